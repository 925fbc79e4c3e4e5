import type { NatsFrontEnd } from "sheaf/adapters/nats";
import type { FleetPart } from "../contract/fleet-part.ts";
import type { FleetConnection } from "./connection.ts";

export class GatewayPart implements FleetPart {
  readonly ready: Promise<void>;
  readonly frontEnd: NatsFrontEnd<unknown, unknown>;
  readonly #connection: FleetConnection;
  /** A model that restarts is no reason to refuse what the queue can hold until then. */
  readonly #holdMs: number;
  #isReady = false;
  #withoutWorkersAtMs: number | undefined;

  constructor(frontEnd: NatsFrontEnd<unknown, unknown>, connection: FleetConnection, holdMs: number) {
    this.frontEnd = frontEnd;
    this.#connection = connection;
    this.#holdMs = holdMs;
    this.ready = connection.opened.then(() => frontEnd.ready());
    this.ready.then(
      () => (this.#isReady = true),
      () => undefined,
    );
  }

  get unavailableReason(): string | undefined {
    const { unavailableReason } = this.frontEnd;
    if (this.#connection.unavailableReason !== undefined) return this.#connection.unavailableReason;
    if (unavailableReason !== undefined) return `the queue cannot be used: ${unavailableReason}`;
    if (this.frontEnd.workers().length > 0) {
      this.#withoutWorkersAtMs = undefined;
      return this.#isReady ? undefined : "the queue is not there yet";
    }
    if (this.frontEnd.otherWorkers().length > 0)
      return "the workers of this name serve another model; start gateways and workers with the same model";
    this.#withoutWorkersAtMs ??= performance.now();
    const isHeld = this.#isReady && performance.now() - this.#withoutWorkersAtMs < this.#holdMs;
    return isHeld ? undefined : "no worker is alive";
  }
}
