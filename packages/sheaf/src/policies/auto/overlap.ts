import type { CostModel } from "../cost-model.ts";
import type { QueueView } from "../policy.ts";
import { batchesToTrust, overlapGain, steadyCrowd } from "./constants.ts";

/**
 * Rule *overlap*, where a busy slot takes a batch ahead. While a batch runs in a worker, this thread can settle results and
 * take new calls only for callers who are not in it. In a closed loop one whole batch and the way of its callers take turns:
 * n items every s(n) + n r, where r is the time between two callers who come back. Two halves overlap, and take 2 s(n/2).
 */
export class Overlap {
  /** Items that go ahead, and the most that a batch takes; Infinity where halves gain nothing. */
  size: number = Infinity;
  #slots = 1;
  #maxBatchSize = 1;
  // How near the items outstanding come to the crowd between two batches: in a closed loop everyone is back each time.
  #steady = 0;
  #most = 0;
  // Callers of a batch that ended, those of them who are back, and r.
  #answered = 0;
  #back = 0;
  #firstAtMs = 0;
  #perCallerMs = 0;

  /** Whether the callers are a closed loop. */
  get isSteady(): boolean {
    return this.#steady > steadyCrowd;
  }

  arrived({ nowMs, arrivals, outstanding, slots, maxBatchSize }: QueueView): void {
    this.#slots = slots;
    this.#maxBatchSize = maxBatchSize;
    this.#most = Math.max(this.#most, outstanding);
    // From the first on: two bursts with silence between them are not callers who come back.
    if (this.#back === 0) this.#firstAtMs = nowMs;
    this.#back += arrivals;
    if (this.#back < this.#answered) return;
    this.#perCallerMs += overlapGain * ((nowMs - this.#firstAtMs) / this.#back - this.#perCallerMs);
    this.#answered = Infinity;
  }

  /** A batch of `ran` items ended. `crowd`: the most items at once lately. */
  ended(ran: number, crowd: number, cost: CostModel): void {
    if (this.#most === 0) return;
    if (this.#answered === Infinity) {
      this.#answered = ran;
      this.#back = 0;
    }
    this.#steady += overlapGain * (this.#most / crowd - this.#steady);
    this.#most = 0;
    const whole = Math.min(Math.round(crowd / this.#slots), this.#maxBatchSize);
    const half = Math.round(crowd / this.#slots / 2);
    const pays =
      half < whole &&
      this.isSteady &&
      cost.batches >= batchesToTrust &&
      cost.at(half) / half < cost.at(whole) / whole + this.#perCallerMs;
    this.size = pays ? half : Infinity;
  }
}
