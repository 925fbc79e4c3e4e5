import type { NatsSubscription } from "../../wire/client.ts";
import type { QueueConnection } from "../../wire/connection.ts";
import type { QueueSettings } from "../../queue/options.ts";
import type { QueueNames } from "../../queue/topology.ts";
import { WorkerRegistry, workerInfoOf, type WorkerInfo } from "../../queue/worker-registry.ts";

/** Time for which a worker listens to all others: there may be many. */
const listensForMs = 5000;

/** The other workers of the queue, while this one listens to them. */
export class Peers {
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #registry: WorkerRegistry;
  readonly #heard: () => void;
  #listening: NatsSubscription | undefined;
  #listensFromAtMs = Infinity;
  #listensEndAtMs = -Infinity;

  /** `heard` is called at every heartbeat. */
  constructor(settings: QueueSettings, names: QueueNames, link: QueueConnection, heard: () => void) {
    this.#settings = settings;
    this.#names = names;
    this.#link = link;
    this.#heard = heard;
    this.#registry = new WorkerRegistry(settings.clock);
  }

  stop(): void {
    this.#registry.stop();
  }

  /** How long it has been listening; 0 while it is not. */
  get listenedMs(): number {
    return Math.max(0, this.#settings.clock.now() - this.#listensFromAtMs);
  }

  get isListening(): boolean {
    return this.#listening !== undefined;
  }

  /** From now on for a while. All that are there answer within a tenth of a second. */
  listen(): void {
    const nowMs = this.#settings.clock.now();
    this.#listensEndAtMs = nowMs + listensForMs;
    if (this.#listening !== undefined) return;
    this.#listensFromAtMs = nowMs;
    this.#listening = this.#link.subscribe(
      this.#names.alive,
      ({ data }) => {
        this.#registry.add(workerInfoOf(data));
        this.#heard();
      },
      { need: "optional" },
    );
    this.#link.publish(this.#names.discover);
  }

  /** Stops to listen when nothing has asked for it for a while. */
  settle(): void {
    if (this.#settings.clock.now() <= this.#listensEndAtMs) return;
    this.#listening?.unsubscribe();
    this.#listening = undefined;
    this.#listensFromAtMs = Infinity;
  }

  add(info: WorkerInfo): void {
    this.#registry.add(info);
  }

  /** Those that are there. */
  all(): WorkerInfo[] {
    return this.#registry.all();
  }

  /** Those that were heard within the last `ms`. */
  heardWithin(ms: number): WorkerInfo[] {
    const silent = new Set(this.#registry.silentFor(ms));
    return this.#registry.all().filter((info) => !silent.has(info));
  }
}
