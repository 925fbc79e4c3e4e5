import type { QueueSettings } from "../queue/options.ts";

/** Poison mode lasts this many ack waits after a suspect was seen anywhere. */
const carefulWaits = 3;
/** A worker that sees many suspects warns the others this often at most. */
const sayEveryMs = 1000;

/**
 * Where there are suspects, there may be an item in the queue that kills workers. In poison mode a worker looks at one item
 * before it takes a batch, so that a poisonous item takes no innocent ones with it.
 */
export class PoisonMode {
  readonly #settings: QueueSettings;
  readonly #sayToAll: () => void;
  #endsAtMs = -Infinity;
  #saidAtMs = -Infinity;

  constructor(settings: QueueSettings, sayToAll: () => void) {
    this.#settings = settings;
    this.#sayToAll = sayToAll;
  }

  get isOn(): boolean {
    return this.#settings.clock.now() < this.#endsAtMs;
  }

  /**
   * Starts poison mode: this worker has just started, perhaps because of such an item, or another has seen a suspect.
   */
  begin(): void {
    this.#endsAtMs = this.#settings.clock.now() + carefulWaits * this.#settings.ackWaitMs;
  }

  /** A suspect arrived here. */
  suspectSeen(): void {
    this.begin();
    const nowMs = this.#settings.clock.now();
    if (nowMs - this.#saidAtMs < sayEveryMs) return;
    this.#saidAtMs = nowMs;
    this.#sayToAll();
  }
}
