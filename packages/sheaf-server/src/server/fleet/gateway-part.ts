import type { NatsFrontEnd } from "sheaf/adapters/nats";
import type { FleetPart } from "../contract/fleet-part.ts";
import type { FleetConnection } from "./connection.ts";

/** The gateway's part of a model: the front end and its availability. */
export class GatewayPart implements FleetPart {
  readonly ready: Promise<void>;
  readonly frontEnd: NatsFrontEnd<unknown, unknown>;
  readonly #connection: FleetConnection;
  #isReady = false;

  constructor(frontEnd: NatsFrontEnd<unknown, unknown>, connection: FleetConnection) {
    this.frontEnd = frontEnd;
    this.#connection = connection;
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
    const hasWorkers = this.frontEnd.workers().length > 0;
    if (hasWorkers) return this.#isReady ? undefined : "the queue is not there yet";
    return this.frontEnd.otherWorkers().length > 0
      ? "the workers of this name serve another model; start gateways and workers with the same model"
      : "no worker is alive";
  }
}
