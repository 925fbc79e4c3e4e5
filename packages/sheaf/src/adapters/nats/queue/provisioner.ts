import { within } from "../../../core/runtime/runtime.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "./options.ts";
import { ensureDeadLetters, ensureQueue, namesOf } from "./topology.ts";

const againMs = 500;
/** During an election a request may get no answer at all: then another one is sent beside it. */
const unansweredMs = 1000;
const maxAttempts = 4;
/** The consumers of all lanes answer within this time, unless one has no leader. */
const lanesMs = 100;
/** A queue has many parts, each with elections of its own: those that come together are looked at once. */
const electionsMs = 20;

/** Creates the queue where it is missing: when asked, and again until it exists. */
export class QueueProvisioner {
  readonly #settings: QueueSettings;
  readonly #route: string | undefined;
  readonly #found: (identity: string) => void;
  #cancelAgain: (() => void) | undefined;
  #cancelElected: (() => void) | undefined;
  /** Attempts whose outcome counts. Requests from before an election, or before a later success, may never be answered. */
  readonly #attempts: Set<object> = new Set();
  #isStopped = false;
  /** The next attempt brings the limits up to this side's own. */
  #mayUpdate: boolean;
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
    this.#mayUpdate = route === undefined;
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

  /**
   * Is notified when an operator deletes the queue or a part of it or changes it, and when another server of a cluster leads it.
   * `changed` is called before it is looked for, or created again.
   */
  watch(link: QueueConnection, changed: () => void): void {
    const { streamUpdated, streamDeleted, consumerDeleted, streamElected, consumerElected } = namesOf(this.#settings);
    const on = (subject: string, look: () => void): void => {
      const changedThen = (): void => {
        changed();
        look();
      };
      link.subscribe(subject, changedThen, { need: "optional" });
    };
    for (const subject of [streamDeleted, consumerDeleted]) on(subject, () => this.provisionSoon());
    on(streamUpdated, () => {
      // By another front end with other limits perhaps: each would undo what the other has done.
      this.#mayUpdate = false;
      this.provisionSoon();
    });
    // Consumers have elections of their own, which a front end need not know of.
    for (const subject of [streamElected, ...(this.#route === undefined ? [] : [consumerElected])])
      on(subject, () => this.#elected());
  }

  #elected(): void {
    this.#cancelElected ??= this.#settings.clock.after(electionsMs, () => {
      this.#cancelElected = undefined;
      this.#attempts.clear();
      this.provision();
    });
  }

  provision(): void {
    if (this.#isStopped || this.#attempts.size >= maxAttempts) return;
    if (this.#settings.durability === "none") {
      this.#wasProvisioned = true;
      return this.#found("");
    }
    const attempt = {};
    this.#attempts.add(attempt);
    const ifItCounts = (act: () => void): void => {
      if (this.#attempts.has(attempt)) act();
    };
    const cancel = this.#settings.clock.after(unansweredMs, () => ifItCounts(() => this.provisionSoon()));
    void this.#ensure(attempt)
      .catch((error: Error) => ifItCounts(() => this.#failed(error.message)))
      .finally(() => {
        cancel();
        this.#attempts.delete(attempt);
      });
  }

  async #ensure(attempt: object): Promise<void> {
    const mayUpdate = this.#mayUpdate;
    this.#mayUpdate = this.#route === undefined;
    const { identity, consumers } = await ensureQueue(this.#settings, this.#route, mayUpdate);
    // Each lane has an election of its own. Those with a leader do not wait for the others.
    const isEarly = this.#wasProvisioned && !(await within(consumers, lanesMs, this.#settings.clock));
    if (isEarly) this.#succeeded(attempt, identity);
    await consumers;
    // Later nothing waits for these: their stream may be without a leader a little longer.
    const deadLetters = ensureDeadLetters(this.#settings);
    if (!this.#wasProvisioned) await deadLetters;
    this.#succeeded(attempt, identity);
    await deadLetters;
  }

  #succeeded(attempt: object, identity: string): void {
    this.#unavailableReason = this.#warnedOf = undefined;
    this.#wasProvisioned = true;
    this.#attempts.clear();
    this.#attempts.add(attempt);
    if (!this.#isStopped) this.#found(identity);
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
    this.#cancelElected?.();
  }
}
