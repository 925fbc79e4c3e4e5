import type { QueueSettings } from "./queue-options.ts";
import { ensureQueue } from "./topology.ts";

const againMs = 500;

/** Sees to it that the queue is there: when asked, and again until it is. */
export class QueueKeeper {
  readonly #settings: QueueSettings;
  readonly #role: "front-end" | "worker";
  readonly #kept: (created: string) => void;
  #cancelAgain: (() => void) | undefined;
  #isStopped = false;

  /** `kept` is called each time the queue was seen to be there, with the moment of its making; at once without JetStream. */
  constructor(settings: QueueSettings, role: "front-end" | "worker", kept: (created: string) => void) {
    this.#settings = settings;
    this.#role = role;
    this.#kept = kept;
  }

  keep(): void {
    if (this.#settings.durability === "none") return this.#kept("");
    void ensureQueue(this.#settings, this.#role).then(
      (created) => {
        if (!this.#isStopped) this.#kept(created);
      },
      () => this.keepSoon(),
    );
  }

  keepSoon(): void {
    if (this.#isStopped || this.#cancelAgain !== undefined) return;
    this.#cancelAgain = this.#settings.clock.after(againMs, () => {
      this.#cancelAgain = undefined;
      this.keep();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelAgain?.();
  }
}
