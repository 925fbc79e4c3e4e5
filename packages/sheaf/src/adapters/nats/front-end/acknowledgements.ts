import type { QueueSettings } from "../queue/options.ts";
import type { QueueConnection } from "../wire/connection.ts";

const maxHeld = 10_000;
/** Acknowledgements are remembered for this long to twice as long: for an election of a cluster and more. */
const rememberedMs = 10_000;
const maxRemembered = 10_000;

/**
 * Takes answered items out of the queue. The server takes an item out by its number alone: a number of a queue that was lost
 * must not reach the queue that was made after it, where it is another item's. And a server that is lost may take with it
 * an acknowledgement that nothing confirms: the last ones are sent again afterwards.
 */
export class Acknowledgements {
  readonly #settings: QueueSettings;
  readonly #link: QueueConnection;
  /** Of replies that came before it was known whether the queue is still the same. */
  readonly #held: string[] = [];
  #isSuspended = false;
  #mayBeLost = false;
  #oldNumbersEndAtMs = -Infinity;
  #sent: string[] = [];
  #sentBefore: string[] = [];
  #sentFromAtMs = 0;

  constructor(settings: QueueSettings, link: QueueConnection) {
    this.#settings = settings;
    this.#link = link;
  }

  /** It is not known whether the queue is still the same. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** The queue was away since it was found last. */
  get mayBeLost(): boolean {
    return this.#mayBeLost;
  }

  /** The connection is down: another queue may have taken the place of this one. */
  suspend(): void {
    this.#isSuspended = this.#mayBeLost = true;
  }

  /** Nothing leads the queue: acknowledgements sent lately may be lost. */
  doubt(): void {
    this.#mayBeLost = true;
  }

  /** `isOpen`: the item is that of a call that is not answered yet, so it cannot be of an older queue. */
  send(subject: string, isOpen: boolean): void {
    if (this.#isSuspended) {
      if (this.#held.length < maxHeld) this.#held.push(subject);
      return;
    }
    if (!isOpen && this.#settings.clock.now() <= this.#oldNumbersEndAtMs) return;
    this.#publish(subject);
  }

  found(queue: "the same" | "another"): void {
    const held = this.#held.splice(0);
    const again = this.#mayBeLost ? [...this.#sentBefore, ...this.#sent] : [];
    this.#isSuspended = this.#mayBeLost = false;
    if (queue === "the same") {
      for (const subject of again) this.#link.publish(subject);
      // They too may be lost, if the server is lost again.
      for (const subject of held) this.#publish(subject);
      return;
    }
    this.#sent = [];
    this.#sentBefore = [];
    this.#oldNumbersEndAtMs = this.#settings.clock.now() + this.#settings.maxAgeMs;
  }

  #publish(subject: string): void {
    this.#link.publish(subject);
    const nowMs = this.#settings.clock.now();
    if (nowMs - this.#sentFromAtMs > rememberedMs || this.#sent.length >= maxRemembered) {
      this.#sentBefore = this.#sent;
      this.#sent = [];
      this.#sentFromAtMs = nowMs;
    }
    this.#sent.push(subject);
  }
}
