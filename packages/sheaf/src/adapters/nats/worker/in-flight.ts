import type { Delivery } from "./delivery.ts";

const cancelsRemembered = 4096;
const longestKeyBytes = 200;

/** Items that a worker has taken and not answered, by key, and cancellations that came before their item. */
export class InFlight {
  readonly #deliveries: Map<string, Delivery> = new Map();
  readonly #cancelled: Set<string> = new Set();

  get(key: string): Delivery | undefined {
    return this.#deliveries.get(key);
  }

  /** The items that are here now. */
  all(): Delivery[] {
    return [...this.#deliveries.values()];
  }

  add(delivery: Delivery): void {
    this.#deliveries.set(delivery.key, delivery);
  }

  remove(key: string): void {
    this.#deliveries.delete(key);
  }

  /** Its caller has left, whether it is here or on its way. */
  cancel(data: Uint8Array): void {
    // Not one of our keys: a few thousand of them, remembered, could fill the memory.
    if (data.byteLength > longestKeyBytes) return;
    const key = new TextDecoder().decode(data);
    const delivery = this.#deliveries.get(key);
    if (delivery === undefined) {
      this.#cancelled.add(key);
      if (this.#cancelled.size > cancelsRemembered) this.#cancelled.delete(this.#cancelled.values().next().value!);
      return;
    }
    delivery.isCancelled = true;
    delivery.departure.leave(new Error("The caller has left."));
  }

  /** Whether it was cancelled before it came; answers true once. */
  wasCancelled(key: string): boolean {
    return this.#cancelled.delete(key);
  }

  /** The keys of the items here of one front end, whose prefix is `prefix`. */
  keysOf(prefix: Uint8Array): string[] {
    const text = new TextDecoder().decode(prefix);
    return [...this.#deliveries.keys()].filter((key) => key.startsWith(text));
  }

  /** The queue that they came from is lost: acknowledgements of them must not reach its successor. */
  forgetQueue(): void {
    for (const delivery of this.#deliveries.values()) delivery.ack = undefined;
  }

  /** Those not reported to the queue for `silentMs`; they are reported now. */
  *silent(nowMs: number, silentMs: number): Generator<Delivery> {
    for (const delivery of this.#deliveries.values()) {
      if (nowMs - delivery.signalledAtMs < silentMs) continue;
      delivery.signalledAtMs = nowMs;
      yield delivery;
    }
  }
}
