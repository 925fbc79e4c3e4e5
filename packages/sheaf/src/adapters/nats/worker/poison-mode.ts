import type { QueueSettings } from "../queue/options.ts";

/** So many times the ack wait after a redelivery anywhere, items are taken with care. */
const carefulWaits = 3;
/** A worker that sees many suspects tells the others once in a while. */
const sayEveryMs = 1000;

/**
 * After a redelivery somebody may hold an item that ends workers. While that is so, a worker looks at one item before it
 * takes a batch: the guilty one then takes no innocent ones with it.
 */
export class PoisonMode {
  readonly #settings: QueueSettings;
  readonly #sayToAll: () => void;
  #untilMs = -Infinity;
  #saidAtMs = -Infinity;

  constructor(settings: QueueSettings, sayToAll: () => void) {
    this.#settings = settings;
    this.#sayToAll = sayToAll;
  }

  get isOn(): boolean {
    return this.#settings.clock.now() < this.#untilMs;
  }

  /** From now on: this worker has just started, perhaps because of such an item, or another one has seen a suspect. */
  begin(): void {
    this.#untilMs = this.#settings.clock.now() + carefulWaits * this.#settings.ackWaitMs;
  }

  /** A suspect came here. */
  redeliverySeen(): void {
    this.begin();
    const nowMs = this.#settings.clock.now();
    if (nowMs - this.#saidAtMs < sayEveryMs) return;
    this.#saidAtMs = nowMs;
    this.#sayToAll();
  }
}
