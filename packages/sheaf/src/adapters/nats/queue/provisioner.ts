import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "./options.ts";
import { ensureQueue, namesOf } from "./topology.ts";

const againMs = 500;

/** Creates the queue where it is missing: when asked, and again until it exists. */
export class QueueProvisioner {
  readonly #settings: QueueSettings;
  readonly #route: string | undefined;
  readonly #found: (identity: string) => void;
  #cancelAgain: (() => void) | undefined;
  #isStopped = false;
  #wasProvisioned = false;
  #unavailableReason: string | undefined;
  #warnedOf: string | undefined;

  /**
   * `route` is a worker's, and undefined at a front end. `found` is called each time the queue was found, with
   * its identity; at once without JetStream.
   */
  constructor(settings: QueueSettings, route: string | undefined, found: (identity: string) => void) {
    this.#settings = settings;
    this.#route = route;
    this.#found = found;
  }

  /** Why the last check of the queue failed; undefined where it succeeded, or was never made. */
  get unavailableReason(): string | undefined {
    return this.#unavailableReason;
  }

  /** The queue has existed once. */
  get wasProvisioned(): boolean {
    return this.#wasProvisioned;
  }

  /** Is notified when an operator deletes the queue or a part of it. `deleted` is called before it is created again. */
  watch(link: QueueConnection, deleted: () => void): void {
    const { streamDeleted, consumerDeleted } = namesOf(this.#settings);
    for (const subject of [streamDeleted, consumerDeleted])
      link.subscribe(
        subject,
        () => {
          deleted();
          this.provisionSoon();
        },
        { need: "optional" },
      );
  }

  provision(): void {
    if (this.#settings.durability === "none") {
      this.#wasProvisioned = true;
      return this.#found("");
    }
    void ensureQueue(this.#settings, this.#route).then(
      (identity) => {
        this.#unavailableReason = this.#warnedOf = undefined;
        this.#wasProvisioned = true;
        if (!this.#isStopped) this.#found(identity);
      },
      (error: Error) => this.#failed(error.message),
    );
  }

  provisionSoon(): void {
    if (this.#isStopped || this.#cancelAgain !== undefined) return;
    this.#cancelAgain = this.#settings.clock.after(againMs, () => {
      this.#cancelAgain = undefined;
      this.provision();
    });
  }

  #failed(reason: string): void {
    // A server that restarts is out of reach for a moment; one that refuses goes on refusing until somebody fixes it.
    if (reason === this.#unavailableReason && reason !== this.#warnedOf && !this.#isStopped) {
      this.#settings.warn(`sheaf: the queue ${this.#settings.queue} cannot be used, and is tried again: ${reason}`);
      this.#warnedOf = reason;
    }
    this.#unavailableReason = reason;
    this.provisionSoon();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelAgain?.();
  }
}
