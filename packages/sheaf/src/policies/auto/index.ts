import { checkOptions, checkSpan } from "../../shared/checks.ts";
import type { CostModel } from "../cost-model.ts";
import type { BatchRecord, Decision, Policy, QueueView } from "../policy.ts";
import { Linger } from "./linger.ts";
import { Overlap } from "./overlap.ts";
import { ArrivalRate } from "./arrival-rate.ts";
import { budgetUntil } from "./budget.ts";
import { CoresRule } from "./cores.ts";
import { DeadlineRule } from "./deadline.ts";
import { Pacing } from "./pacing.ts";
import { SizeRule } from "./size.ts";
import { crowdGain, meanBatchGain, rateSpanRuns, shareSlack, wholeOverPart } from "./constants.ts";

/** @see auto */
export interface AutoOptions {
  /**
   * Arrival → result, in milliseconds. Given, auto holds as long as the budget allows and sends all that waits: the
   * fewest runs within the budget.
   * @default none: the lowest latency
   */
  readonly latencyBudgetMs?: number | undefined;
}

/**
 * The default policy: dispatches at once, as `greedy` does, except where its measurements say that something else
 * is faster. Nothing to tune. Eight rules, each a closed form of the learned cost s(n) and arrival rates:
 * - *size*: of n waiting items send the k that drains them with the lowest mean latency;
 * - *pacing* (several slots, and a cost mostly fixed): a few items wait for their slot's share of a run, so that idle
 *   slots do not grab crumbs;
 * - *linger*: wait for a clump (at most s(0)/4) or for callers just answered (at most s(0)/2), while they come fast
 *   enough to pay for it;
 * - *target* (where weights explain run times, instead of *size*): runs so long that the waiting items drain fastest;
 * - *overlap* (a worker that takes a batch ahead, callers who come back): half of all callers a batch, so that the others
 *   come back while it runs;
 * - *deadline* (several slots, and calls with deadlines that eager dispatch would miss): hold as long as the first one allows;
 * - *cores* (the executor reports a shortage of cores, and the callers are no closed loop): hold for others to join the batch, at most
 *   as long as the fixed part of a run;
 * - *budget* (only with `latencyBudgetMs`): hold as long as the budget allows.
 */
export function auto(options: AutoOptions = {}): Policy {
  checkOptions(options, { latencyBudgetMs: checkSpan });
  return new Auto(options.latencyBudgetMs);
}

class Auto implements Policy {
  readonly name = "auto";

  readonly latencyBudgetMs: number | undefined;
  readonly #arrivals = new ArrivalRate();
  readonly #pacing = new Pacing();
  readonly #linger = new Linger();
  readonly #size = new SizeRule();
  readonly #deadline = new DeadlineRule();
  /** Made where a busy slot takes a batch ahead. */
  #overlap: Overlap | undefined;
  /** Made where the executor knows whether cores are short. */
  #cores: CoresRule | undefined;
  #meanBatch = 1;
  // The most items at once, slowly forgotten: once a slot's share of them is here, no other is worth waiting for.
  #crowd = 1;
  #held = false;

  constructor(latencyBudgetMs: number | undefined) {
    this.latencyBudgetMs = latencyBudgetMs;
  }

  get aheadSize(): number {
    return this.#overlap === undefined ? Infinity : this.#overlap.size;
  }

  arrived(view: QueueView): void {
    const { nowMs, arrivals, outstanding } = view;
    // A budget wants the fewest runs.
    if (view.prefetch > 0 && this.latencyBudgetMs === undefined) (this.#overlap ??= new Overlap()).arrived(view);
    this.#linger.arrived(nowMs, arrivals, this.#arrivals.arrived(nowMs, arrivals));
    if (view.coreShortage !== undefined) (this.#cores ??= new CoresRule()).arrived(view);
    const gain = Math.min(1, crowdGain * arrivals);
    this.#crowd = Math.max(outstanding, this.#crowd + gain * (outstanding - this.#crowd));
  }

  observe(record: BatchRecord, nowMs: number, cost: CostModel): void {
    const { size } = record;
    this.#cores?.observe(record);
    this.#linger.observe(nowMs, size);
    this.#overlap?.ended(size, this.#crowd, cost);
    this.#meanBatch += meanBatchGain * (size - this.#meanBatch);
    this.#arrivals.spanAtLeast(rateSpanRuns * cost.line(this.#meanBatch));
  }

  /**
   * Work of T waits. In runs of F + x, a mean item of it is answered after (F + x) (1/2 + T / 2Wx): least for
   * x = √(F T / W), and for items that come meanwhile twice that T.
   */
  targetMs({ waiting, weight, slots, cost }: QueueView): number {
    if (this.latencyBudgetMs !== undefined) return this.latencyBudgetMs;
    const fixedMs = cost.fixedMsAtMost;
    const workMs = cost.of(waiting, weight, weight / waiting) - cost.fixedMs;
    return fixedMs + Math.sqrt((2 * fixedMs * workMs) / slots);
  }

  decide(view: QueueView): Decision {
    const holdEndsAtMs = this.#holdUntil(view);
    if (holdEndsAtMs > view.nowMs) {
      this.#held = true;
      return { askAgainAtMs: holdEndsAtMs };
    }
    const run = this.#runNow(view);
    const reason = this.#held && run < view.maxBatchSize ? "hold" : undefined;
    this.#held = false;
    this.#cores?.dispatched();
    return { run, reason };
  }

  #runNow(view: QueueView): number {
    if (view.waiting >= this.aheadSize) return this.aheadSize;
    if (this.latencyBudgetMs !== undefined) return view.waiting;
    const size = this.#size.of(view, this.#arrivals, this.#pacing);
    return view.deadlineAtMs < Infinity && this.#deadline.isNear && servesMore(view, size) ? view.waiting : size;
  }

  #holdUntil(view: QueueView): number {
    const { nowMs, waiting, oldestAtMs, deadlineAtMs, slots, maxBatchSize, maxWaitMs, cost } = view;
    if (waiting >= maxBatchSize || cost.batches === 0) return nowMs;
    const share = Math.min(this.#crowd / slots, this.aheadSize) - shareSlack;
    const holdEndsAtMs = Math.max(
      this.#pacing.until(view, share, this.#arrivals),
      this.#linger.until(view, share),
      this.latencyBudgetMs === undefined
        ? Math.max(
            deadlineAtMs < Infinity ? this.#deadline.until(view, share, this.#arrivals) : nowMs,
            (this.#overlap?.isSteady === true ? undefined : this.#cores?.until(view, share, this.#arrivals)) ?? nowMs,
          )
        : budgetUntil(view, this.latencyBudgetMs),
    );
    return Math.min(holdEndsAtMs, oldestAtMs + maxWaitMs);
  }
}

/** Whether an item takes less time in a batch of all waiting items than in one of `size`. */
function servesMore({ waiting, maxBatchSize, cost }: QueueView, size: number): boolean {
  const most = Math.min(waiting, maxBatchSize);
  return cost.at(most) / most < wholeOverPart * (cost.at(size) / size);
}
