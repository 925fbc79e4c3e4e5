import type { DispatchReason } from "../../policies/policy.ts";
import type { RateLimitStats } from "./rate-limit.ts";

/** Quantiles in milliseconds over the last 60 s; 0 without data. */
export interface Distribution {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** The cost of batches: `fixedMs + perItemMs · size + perWeightMs · weight`, in milliseconds, with the 95 % range of each part. */
export interface CostEstimate {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly fixedMsRange: readonly [low: number, high: number];
  readonly perItemMsRange: readonly [low: number, high: number];
  /** With `weigh`: the cost of a unit of weight. Null if weight does not predict run time better than size alone; weights are then ignored. */
  readonly perWeightMs?: number | null | undefined;
  readonly perWeightMsRange?: readonly [low: number, high: number] | undefined;
  /** How weight counts there: as the items' sum, or as the heaviest times their number. */
  readonly batchWeight?: "sum" | "padded" | undefined;
  /** Runs it rests on. */
  readonly runs: number;
  /** `"warm-up"`: only runs of the executor's own sample items support it so far. */
  readonly basis: "runs" | "warm-up";
}

/** The gain measured in the executor's warm-up, with its sample items: the same items in one run and one by one. */
export interface StartGain {
  /** Items of the larger run. */
  readonly batchSize: number;
  readonly speedup: number;
  /** 95 % range of `speedup`. */
  readonly low: number;
  readonly high: number;
  /** Runs it rests on. */
  readonly runs: number;
}

/**
 * Why there is no verdict yet. `"few-runs"`: fewer than 30 that count. `"one-size"`: runs of hardly differing sizes do not show
 * how time grows with size. `"scatter"`: run times of one size vary too much. `"pace"`: runs of some sizes are too
 * rare, or at other times than the others, to separate their cost from the machine's pace. `"close"`: the gain is too close to
 * 1.1 to call.
 */
export type OpenCause = "few-runs" | "one-size" | "scatter" | "pace" | "close";

/** The gain of batching, as far as recent batches support it. */
export interface Verdict {
  /**
   * `"gains"` (at least 1.1 times) and `"gains-nothing"` (less) only where the whole range supports it.
   * `"nothing-to-batch"`: after 50 batches no item has shared a run, so there is no gain to speak of.
   */
  readonly verdict: "measuring" | "gains" | "gains-nothing" | "nothing-to-batch";
  /** Mean size of the batches it rests on; 0 without any. */
  readonly batchSize: number;
  /** Items × the run time of an item alone ÷ the time their batches ran; null while nothing supports an estimate. */
  readonly speedup: number | null;
  /** 95 % range of `speedup`. */
  readonly low: number | null;
  readonly high: number | null;
  /** Batches it rests on: the last 512, without the first 16 of all, the first of each size, and stalls. */
  readonly runs: number;
  /** Why it is still `"measuring"`; null where it is not. */
  readonly cause: OpenCause | null;
  /** Measured by the executor's warm-up; null where that did not run one item and several often enough. */
  readonly start: StartGain | null;
}

/** The number of concurrent batches that would answer 99 % of the last minute's items by their deadline. */
export interface SlotsNeeded {
  /** Slots needed for the busiest five seconds of the last minute. */
  readonly slots: number;
  /** Slots needed for the mean rate of that minute. */
  readonly low: number;
  /** Slots needed for its busiest second. */
  readonly high: number;
  /** Arrivals per second in the busiest five seconds, including refused items. */
  readonly arrivedPerS: number;
  /** 10th percentile, over batches, of the time from arrival to deadline. */
  readonly withinMs: number;
}

/**
 * Why the number of batches in flight is what it is. `"option"`: the `concurrency` option. `"slots"`: the executor's. Where it is
 * learned, `"start"`: it has not changed yet. `"demand"`: full batches waited, and runs hardly got longer. `"queue"`: runs waited for
 * each other on the other side. `"probe"`: fewer are tried, to see whether runs get shorter. `"failure"`: runs failed.
 */
export type ConcurrencyCause = "option" | "slots" | "start" | "demand" | "queue" | "probe" | "failure";

/** Items of one tenant, of several together, or of a lane. */
export interface TenantStats {
  /** Items waiting. */
  readonly queued: number;
  /** Items that have gone in batches. */
  readonly dispatched: number;
  /** Items refused with `QUEUE_FULL`. */
  readonly rejected: number;
}

/** Items by tenant. The counts of one that was idle for long are in `others`, and begin again when it comes back. */
export interface TenantsStats {
  /** The tenants with most items, at most 20, the first one first. */
  readonly busiest: readonly (TenantStats & { readonly key: unknown; readonly share: number })[];
  /** All other tenants together. */
  readonly others: TenantStats;
}

/** Items of live calls (`immediate`, `interactive`), or of bulk ones. */
export interface LaneStats extends TenantStats {
  /** Arrival → settled. */
  readonly latencyMs: Distribution;
}

/** Live calls apart from bulk ones: one p99 over users and a backlog says nothing. */
export interface LanesStats {
  readonly live: LaneStats;
  readonly bulk: LaneStats & {
    /** Age of its oldest waiting item; 0 where none waits. */
    readonly oldestMs: number;
  };
}

/** A snapshot. Counts are since construction, distributions over the last 60 s, times in milliseconds. */
export interface BatcherStats {
  readonly name: string;
  /** Items waiting. */
  readonly queued: number;
  /** Batches in flight. */
  readonly inFlight: number;
  /** Most batches in flight now, and why; null for a fleet, whose workers have numbers of their own. */
  readonly concurrency: { readonly now: number; readonly cause: ConcurrencyCause } | null;
  readonly items: {
    readonly ok: number;
    readonly error: number;
    readonly timeout: number;
    readonly aborted: number;
    readonly rejected: number;
  };
  readonly batches: number;
  /** Extra runs of bisections. */
  readonly bisectRuns: number;
  /** Runs given up after runTimeoutMs. */
  readonly abandonedRuns: number;
  /** Runs given up that have not ended: while they take every slot, calls are refused. */
  readonly hungRuns: number;
  readonly meanBatchSize: number;
  /** 0…1: mean of size / maxBatchSize or weight / maxBatchWeight, whichever is larger for the batch; 0 if unlimited. */
  readonly fillRate: number;
  /**
   * While overload stands and the newest items go first (`overloadOrder`): for how long, and how many items a second
   * arrived and were served since the queue began to grow. Otherwise null.
   */
  readonly overload: { readonly forMs: number; readonly arrivedPerS: number; readonly servedPerS: number } | null;
  /** While nothing is dispatched because a run asked for that: for how much longer, and why. Otherwise null. */
  readonly pause: { readonly leftMs: number; readonly why: string } | null;
  /** With `fairKey`; null without. */
  readonly tenants: TenantsStats | null;
  /** Null until live and bulk items have come. */
  readonly lanes: LanesStats | null;
  /** Arrival → dispatch, mean of each batch. */
  readonly queueWaitMs: Distribution;
  /** Dispatch → results. */
  readonly runMs: Distribution;
  /** Arrival → settled, of every call whose batch ended. */
  readonly latencyMs: Distribution;
  /** Run time as a line through batch sizes, from the last 512 batches; null before ten of at least two sizes. */
  readonly costModel: CostEstimate | null;
  /** The gain of batching, from the same batches. */
  readonly verdict: Verdict;
  /** Null until arrivals and the cost of a batch support it, and where calls have no deadline. */
  readonly slotsNeeded: SlotsNeeded | null;
  /** In the unit of the `price` option; null without it. */
  readonly cost: { readonly total: number; readonly perItem: number; readonly perItemUnbatched: number } | null;
  /** The limit on dispatch, or the one that it shares; null without `rateLimit`. */
  readonly rateLimit: RateLimitStats | null;
  /** Batches by dispatch reason; every reason, 0 where there were none. */
  readonly reasons: Readonly<Record<DispatchReason, number>>;
  readonly advice: readonly string[];
}
