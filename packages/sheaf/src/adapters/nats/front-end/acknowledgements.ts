import type { QueueSettings } from "../queue/options.ts";
import type { QueueConnection } from "../wire/connection.ts";

const maxHeld = 10_000;

/**
 * Takes answered items out of the queue. The server takes an item out by its number alone: a number of a queue that was lost
 * must not reach the queue that was made after it, where it is another item's. An acknowledgement that is lost with a server
 * costs a delivery: the worker asks whether its caller still waits, and drops it.
 */
export class Acknowledgements {
  readonly #settings: QueueSettings;
  readonly #link: QueueConnection;
  /** Of replies that came before it was known whether the queue is still the same. */
  readonly #held: string[] = [];
  #isSuspended = false;
  #oldNumbersEndAtMs = -Infinity;

  constructor(settings: QueueSettings, link: QueueConnection) {
    this.#settings = settings;
    this.#link = link;
  }

  /** It is not known whether the queue is still the same. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** The connection is down: another queue may have taken the place of this one. */
  suspend(): void {
    this.#isSuspended = true;
  }

  /** `isOpen`: the item is that of a call that is not answered yet, so it cannot be of an older queue. */
  send(subject: string, isOpen: boolean): void {
    if (this.#isSuspended) {
      if (this.#held.length < maxHeld) this.#held.push(subject);
      return;
    }
    if (!isOpen && this.#settings.clock.now() <= this.#oldNumbersEndAtMs) return;
    this.#link.publish(subject);
  }

  found(queue: "the same" | "another"): void {
    const held = this.#held.splice(0);
    this.#isSuspended = false;
    if (queue === "the same") for (const subject of held) this.#link.publish(subject);
    else this.#oldNumbersEndAtMs = this.#settings.clock.now() + this.#settings.maxAgeMs;
  }
}
