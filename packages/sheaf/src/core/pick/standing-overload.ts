import type { CostModel } from "../../policies/cost-model.ts";
import type { BatcherStats } from "../contract/stats.ts";
import type { Group } from "../queue/group.ts";
import type { Leavers } from "../queue/leavers.ts";
import type { Queue } from "../queue/queue.ts";

/** An item has waited for too long after this many full runs: longer than any batch that is held or being filled. */
const fullRuns = 5;
/** Full runs in which the queue must have grown: a few lists that come at once are a burst. */
const growingRuns = 5;
/** Standard deviations of a Poisson stream by which arrivals must exceed served items: small batches queue by chance. */
const deviations = 3;
/** Items that are served without a single arrival before the stream has ended: at least this many, over `fullRuns`. */
const servedAlone = 20;

/** Counts of the live lanes since the batcher was made. */
interface Mark {
  readonly atMs: number;
  readonly arrived: number;
  readonly served: number;
  readonly left: number;
}

/**
 * Tells standing overload of the live lanes from a burst: a backlog of bulk changes the order of no live call. It stands while items wait for more than five full runs, all slots busy, and
 * more arrived than was served. First in, first out would then serve nobody in time: every item would wait until its
 * caller is about to leave, and callers who try again would keep the queue that long. So the newest go first.
 * After "adaptive LIFO" in "Fail at Scale" (ACM Queue, 2015).
 */
export class StandingOverload<In> {
  /** Since when it stands; undefined while it does not. */
  beganAtMs: number | undefined;
  readonly #queue: Queue<In>;
  readonly #cost: CostModel;
  readonly #maxBatchSize: number;
  /** A slot has been free since the last look: a rate limit, an order key or the policy held the items that waited. */
  wasIdle = false;
  /** No item counts as waiting before the first look after that. */
  #heldAtMs = -Infinity;
  /** The last look at which an item had waited for more than one full run. */
  #pressedAtMs = -Infinity;
  /** When that began. */
  first: Mark | undefined;
  /** At most a full run ago. */
  #last!: Mark;
  #growing = 0;
  #grewAtMs = -Infinity;
  #lastArrival!: Mark;

  constructor(maxBatchSize: number, queue: Queue<In>, cost: CostModel) {
    this.#maxBatchSize = maxBatchSize;
    this.#queue = queue;
    this.#cost = cost;
  }

  /** Whether the newest items of the group go first. Called before each batch. */
  isNewestFirst(group: Group<In>, nowMs: number): boolean {
    const live = this.#queue.ahead(1);
    if (this.wasIdle) {
      this.wasIdle = false;
      this.#heldAtMs = nowMs;
      return this.#end();
    }
    if (live <= this.#maxBatchSize || this.#cost.batches < 4) return this.#end();
    const runMs = this.#cost.at(this.#maxBatchSize);
    const waitedMs = nowMs - Math.max(group.oldestAtMs(1), this.#heldAtMs);
    if (waitedMs > runMs) this.#pressedAtMs = nowMs;
    // Other groups may have older items.
    else if (nowMs - this.#pressedAtMs > fullRuns * runMs) return this.#end();
    this.#look(nowMs, runMs);
    if (this.beganAtMs === undefined) return false;
    const { leavers, tenants } = this.#queue;
    const limitMs = this.#limitMs(leavers, runMs);
    group.isTooOld = (arrivedAtMs, ofTenant = leavers) => nowMs - arrivedAtMs > this.#limitMs(ofTenant, runMs);
    // A tenant may be less patient than all callers together.
    return waitedMs > (tenants === undefined ? limitMs : runMs);
  }

  /** An item has waited for too long after five full runs, or after half the time in which callers are seen to leave. */
  #limitMs({ lastAtMs, afterMs }: Leavers, runMs: number): number {
    const patienceMs = lastAtMs >= this.first!.atMs ? afterMs / 2 : Infinity;
    return Math.max(runMs, Math.min(fullRuns * runMs, patienceMs));
  }

  view(nowMs: number): BatcherStats["overload"] {
    // Nothing looks when nothing waits.
    if (this.beganAtMs === undefined || this.#queue.ahead(1) === 0 || this.wasIdle) return null;
    const perS = 1000 / Math.max(1, this.#last.atMs - this.first!.atMs);
    return {
      forMs: nowMs - this.beganAtMs,
      arrivedPerS: (this.#last.arrived - this.first!.arrived) * perS,
      servedPerS: (this.#last.served - this.first!.served) * perS,
    };
  }

  #look(nowMs: number, runMs: number): void {
    const { arrived: all, tally, leavers, taken, bulkArrived, refused, bulkTaken } = this.#queue;
    const arrived = all + tally.rejected - bulkArrived - refused.bulk;
    const mark: Mark = { atMs: nowMs, arrived, served: taken - bulkTaken, left: leavers.count };
    const first = (this.first ??= this.#last = this.#lastArrival = mark);
    if (nowMs - this.#last.atMs >= runMs) {
      if (growthOf(this.#last, mark) > 0) {
        this.#growing++;
        this.#grewAtMs = nowMs;
      }
      if (mark.arrived > this.#last.arrived) this.#lastArrival = mark;
      this.#last = mark;
    }
    const limitMs = fullRuns * runMs;
    const { atMs, served } = this.#lastArrival;
    if (nowMs - atMs > limitMs && mark.served - served > servedAlone) return void this.#end();
    if (this.beganAtMs !== undefined || this.#growing < growingRuns || nowMs - this.#grewAtMs > limitMs) return;
    if (growthOf(first, mark) > deviations * Math.sqrt(mark.arrived - first.arrived)) this.beganAtMs = nowMs;
  }

  #end(): false {
    if (this.first === undefined) return false;
    this.first = this.beganAtMs = undefined;
    this.#growing = 0;
    return false;
  }
}

/** By how many items the queue has grown. Those who have left, over and over, are no more of a backlog than those who were served. */
const growthOf = (from: Mark, to: Mark): number =>
  to.arrived - from.arrived - (to.served - from.served) - (to.left - from.left);
