import type { CostModel } from "./cost-model.ts";
import { checkCount, checkOptions, checkSpan } from "../shared/checks.ts";
import type { BatchRecord, Decision, Policy, QueueView } from "./policy.ts";

/** @see adaptive */
export interface AdaptiveOptions {
  /**
   * The p99 of run time that batches may reach, in milliseconds; > 0.
   * @default 100
   */
  readonly targetLatencyMs?: number | undefined;
  /**
   * Equal signals in a row that one step takes; integer >= 1.
   * @default 3
   */
  readonly hysteresis?: number | undefined;
}

/**
 * A size limit and a window that move by steps inside maxBatchSize and maxWaitMs (a quarter of the target where the
 * batcher has none). After each batch: a burst (inter-arrival time below half its slow average, or more waiting than a
 * batch holds) grows both; p99 of run time over the target shrinks both; a quiet spell shrinks the window.
 * Prefer `auto()`, which needs no target; this one is for a limit on run time that must be kept.
 */
export function adaptive(options: AdaptiveOptions = {}): Policy {
  checkOptions(options, { targetLatencyMs: checkSpan, hysteresis: checkCount });
  const { targetLatencyMs = 100, hysteresis = 3 } = options;
  return new Adaptive(targetLatencyMs, hysteresis);
}

type Signal = "grow" | "shrink" | "quiet" | "stay";

class Adaptive implements Policy {
  readonly name = "adaptive";

  readonly #targetLatencyMs: number;
  readonly #hysteresis: number;
  readonly #recentRunMs = new Float64Array(100);
  #runs = 0;
  #smallestSeen = Infinity;
  #largestSeen = 0;

  #sizeLimit = 0;
  #largest = 1;
  #windowMs = 0;
  #widestMs = 0;

  // Moving averages; the gap in a fast and a slow one.
  #depth = 0;
  #fastGapMs = 0;
  #slowGapMs = 0;
  #lastArrivalAtMs: number | undefined;

  #lastSignal: Signal = "stay";
  #repeated = 0;

  constructor(targetLatencyMs: number, hysteresis: number) {
    this.#targetLatencyMs = targetLatencyMs;
    this.#hysteresis = hysteresis;
  }

  arrived({ nowMs, arrivals, waiting }: QueueView): void {
    this.#depth += 0.1 * (waiting - this.#depth);
    const lastAtMs = this.#lastArrivalAtMs;
    this.#lastArrivalAtMs = nowMs;
    if (lastAtMs === undefined) return;
    const gapMs = (nowMs - lastAtMs) / arrivals;
    if (this.#slowGapMs === 0) this.#fastGapMs = this.#slowGapMs = gapMs;
    this.#fastGapMs += Math.min(1, 0.2 * arrivals) * (gapMs - this.#fastGapMs);
    this.#slowGapMs += Math.min(1, 0.01 * arrivals) * (gapMs - this.#slowGapMs);
  }

  decide({ nowMs, waiting, oldestAtMs, maxBatchSize, maxWaitMs }: QueueView): Decision {
    this.#largest = Math.min(maxBatchSize, largestBound);
    this.#widestMs = Math.min(maxWaitMs, this.#targetLatencyMs / 4);
    if (this.#sizeLimit === 0) this.#sizeLimit = this.#largest;
    const limit = Math.max(1, Math.min(this.#sizeLimit, this.#largest));
    const endsAtMs = oldestAtMs + Math.min(this.#windowMs, this.#widestMs);
    if (waiting < limit && nowMs < endsAtMs) return { askAgainAtMs: endsAtMs };
    const run = Math.min(waiting, limit);
    return { run, reason: run < maxBatchSize && this.#windowMs > 0 ? "hold" : undefined };
  }

  observe({ size, runMs, outcome }: BatchRecord, _nowMs: number, { fixedMs }: CostModel): void {
    if (outcome !== "ok") return;
    this.#smallestSeen = Math.min(this.#smallestSeen, size);
    this.#largestSeen = Math.max(this.#largestSeen, size);
    this.#recentRunMs[this.#runs++ % this.#recentRunMs.length] = runMs;
    const signal = this.#signal(fixedMs);
    this.#repeated = signal === this.#lastSignal ? this.#repeated + 1 : 1;
    this.#lastSignal = signal;
    if (this.#repeated < this.#hysteresis) return;
    this.#repeated = 0;
    this.#step(signal);
  }

  #signal(fixedMs: number): Signal {
    // Run time only: total latency is high under a backlog, and smaller batches would make the backlog worse. Nor does
    // a smaller batch help where the fixed cost alone is over the target; the fixed part shows once sizes differ.
    const hopeless = this.#largestSeen >= 2 * this.#smallestSeen && fixedMs >= this.#targetLatencyMs;
    if (this.#p99RunMs() > this.#targetLatencyMs && !hopeless) return "shrink";
    if (this.#depth > this.#sizeLimit || this.#fastGapMs < this.#slowGapMs / 2) return "grow";
    return this.#depth < 1.5 || this.#fastGapMs > 2 * this.#slowGapMs ? "quiet" : "stay";
  }

  #step(signal: Signal): void {
    if (signal === "grow") {
      this.#sizeLimit = Math.min(this.#largest, Math.ceil(this.#sizeLimit * 1.5));
      this.#windowMs = Math.min(this.#widestMs, Math.max(1, this.#windowMs * 1.5));
    } else if (signal === "shrink") {
      this.#sizeLimit = Math.max(1, Math.floor(this.#sizeLimit / 1.5));
      this.#windowMs /= 1.5;
      // Runs before this step do not predict those of the smaller size.
      this.#recentRunMs.fill(0);
    }
    if (signal === "quiet") this.#windowMs /= 1.5;
    if (this.#windowMs < 0.5) this.#windowMs = 0;
  }

  // Of the last 100 runs; fewer after a step down.
  #p99RunMs(): number {
    let most = 0;
    let second = 0;
    for (const runMs of this.#recentRunMs) {
      if (runMs > most) {
        second = most;
        most = runMs;
      } else if (runMs > second) second = runMs;
    }
    return second;
  }
}

// Steps from Infinity would never come down.
const largestBound = 4096;
