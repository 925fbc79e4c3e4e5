import { nextSize, type CostModel } from "../../policies/cost-model.ts";
import { Due } from "../measure/stats.ts";
import { BulkLoad } from "./bulk-load.ts";
import type { Settings } from "../contract/settings.ts";
import type { Batch } from "../queue/entry.ts";
import type { Group } from "../queue/group.ts";
import type { Queue } from "../queue/queue.ts";

/** Share of run time that bulk gets when live calls alone would fill the machine. It costs users as much of their capacity. */
const floor = 0.05;
/** A run of bulk alone reaches this share of the full rate: longer ones gain nothing. */
const wholeRate = 0.97;
/** While live calls come and no size keeps up, a run of bulk reaches this share of the full rate. */
const yieldRate = 0.7;
/** Sizes of 64 buckets: with `maxBatchSize: Infinity` a rate is still that of one of them. */
const largest = 131_072;
/** Then bulk makes a run of live calls at most this many times as long. */
const fillRuns = 1.4;
/** Live calls come while the last one has come within this time. */
const liveForMs = 60_000;
/** Batches that the cost of a size is learned from before it decides. */
const batchesToTrust = 4;
/** Full runs of all slots from one look at the load to the next. */
const runsALook = 4;

/**
 * How bulk shares the machine with live calls, whatever the policy. *Size*: so many items a batch that holds bulk may have. Without
 * live calls, as many as give 0.97 of the full rate. While they come, the fewest that keep up with live and bulk arrivals together,
 * and where none do, the fewest that give 0.7: a live call then waits for short runs. A latency budget of the policy and the
 * deadlines of live calls bound them. *Floor*: bulk is owed a share of the time of every batch that goes while it waits; what it
 * does not get goes first. Nothing waits for ever, and nothing goes because it is old.
 */
export class Background<In> {
  readonly #settings: Pick<Settings<In, never>, "slots" | "maxBatchSize" | "policy">;
  readonly #queue: Queue<In>;
  readonly #cost: CostModel;
  /** Bulk items of a full run: what their floor is ahead of what they have had. */
  #owed = 0;
  #liveSeen = 0;
  #liveAtMs = -Infinity;
  #size = 0;
  #wasBeside: boolean | undefined;
  #isYielding = false;
  #lookAtMs = -Infinity;
  readonly #load = new BulkLoad();
  /** Of live calls. */
  readonly #due = new Due();

  constructor(
    settings: Pick<Settings<In, never>, "slots" | "maxBatchSize" | "policy">,
    queue: Queue<In>,
    cost: CostModel,
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#cost = cost;
  }

  /** Whether a live call has come within a minute. */
  isBesideLive(nowMs: number): boolean {
    const live = this.#queue.arrived - this.#queue.bulkArrived;
    if (live > this.#liveSeen) this.#liveAtMs = nowMs;
    this.#liveSeen = live;
    return nowMs - this.#liveAtMs < liveForMs;
  }

  /** Bulk items of the group that go before its live ones: what is owed. */
  turn(group: Group<In>): number {
    if (group.laneQueue(2).live === 0 || !this.isDue) return 0;
    return Math.floor(this.#owed);
  }

  /** Immediate calls give way only to what they alone have kept from it for 20 full runs. */
  get isDue(): boolean {
    if (this.#owed < 1 || this.#queue.bulkWaiting === 0) return false;
    return this.#owed >= this.#fullSize || this.#queue.ahead(0) === 0;
  }

  /** Most items up to which bulk fills the next batch of the group. */
  limit(group: Group<In>, nowMs: number): number {
    const size = this.size(nowMs);
    const live = group.waiting - group.laneQueue(2).live;
    if (live === 0 || !this.#isKnown) return size;
    if (this.#isYielding) return Math.min(size, this.#within(fillRuns * this.#cost.at(Math.min(live, size)), 0));
    if (this.#queue.nextDeadlineAtMs === Infinity) return size;
    const isLate = nowMs + this.#likelyMs(size) > group.firstDeadlineAtMs(size, 1);
    return isLate ? Math.min(size, live) : size;
  }

  /** Most items of a batch that holds bulk, unless more live ones go. */
  size(nowMs: number): number {
    const isBeside = this.isBesideLive(nowMs);
    const { maxBatchSize } = this.#settings;
    if (!this.#isKnown) return maxBatchSize;
    if (nowMs >= this.#lookAtMs || isBeside !== this.#wasBeside) this.#look(nowMs, isBeside);
    return Math.min(this.#size, maxBatchSize);
  }

  /** A batch has been taken, which will take `runMs`. */
  took({ entries, bulk }: Batch<In>, runMs: number): void {
    const { length: count } = entries;
    const { deadlineAtMs, arrivedAtMs } = entries[0]!.terms;
    if (bulk < count) this.#due.learn(deadlineAtMs - arrivedAtMs);
    if (runMs === 0 || (bulk === 0 && this.#queue.bulkWaiting === 0)) return;
    const most = this.#fullSize;
    const owed = this.#owed + most * (runMs / this.#fullMs) * (floor - bulk / count);
    this.#owed = Math.min(most, Math.max(-most, owed));
  }

  /** Where runs take no time, their size does not matter. */
  get #isKnown(): boolean {
    return this.#cost.batches >= batchesToTrust && this.#fullMs > 0;
  }

  get #fullMs(): number {
    return this.#cost.at(this.#fullSize);
  }

  get #fullSize(): number {
    return Math.min(this.#settings.maxBatchSize, largest);
  }

  #likelyMs(size: number, deviations = 3): number {
    return this.#cost.at(size) * (1 + deviations * this.#cost.noise);
  }

  #look(nowMs: number, isBeside: boolean): void {
    const slots = Math.min(this.#settings.slots.limit, largest);
    let mostPerMs = 0;
    for (const size of this.#sizes()) mostPerMs = Math.max(mostPerMs, this.#perMs(size));
    const { arrived, bulkArrived, bulkWaiting } = this.#queue;
    this.#load.look(nowMs, { arrived, bulkArrived, bulkWaiting }, slots * mostPerMs, slots * this.#fullSize);
    this.#lookAtMs = nowMs + (runsALook * this.#fullMs) / slots;
    this.#wasBeside = isBeside;
    this.#size = this.#sizeFor(slots, mostPerMs, isBeside);
  }

  #sizeFor(slots: number, mostPerMs: number, isBeside: boolean): number {
    const whole = this.#reaching(wholeRate * mostPerMs);
    this.#isYielding = false;
    if (!this.#hasSeenSmall()) return Math.ceil(this.#fullSize / 4);
    if (!isBeside) return whole;
    const budgetMs = this.#settings.policy.latencyBudgetMs;
    const yields = budgetMs === undefined ? this.#reaching(yieldRate * mostPerMs) : whole;
    const keepsUp = this.#reaching(this.#load.share * mostPerMs);
    this.#isYielding = keepsUp <= yields;
    const size = Math.max(yields, keepsUp);
    const withinMs = Math.min(budgetMs ?? Infinity, this.#due.withinMs || Infinity);
    return Math.min(size, this.#within(withinMs / (1 + 1 / slots)));
  }

  #perMs(size: number): number {
    return size / Math.max(this.#cost.at(size), Number.EPSILON);
  }

  /** The smallest size of this rate. */
  #reaching(perMs: number): number {
    for (const size of this.#sizes()) {
      if (this.#perMs(size) < perMs * (1 - 1e-9)) continue;
      // Between two that are worth asking about, the cost is nearly straight.
      let smallest = size;
      while (smallest > 1 && this.#perMs(smallest - 1) >= perMs * (1 - 1e-9)) smallest--;
      return smallest;
    }
    return this.#fullSize;
  }

  /** Without a small size seen, nothing tells how much of a run is fixed. */
  #hasSeenSmall(): boolean {
    for (const size of this.#sizes()) if (size <= this.#fullSize / 4 && this.#cost.seen(size) > 0) return true;
    return false;
  }

  /** The largest size that runs within this time, even with so many deviations more; at least 1. */
  #within(ms: number, deviations = 3): number {
    if (ms === Infinity) return this.#fullSize;
    let most = 1;
    for (const size of this.#sizes()) if (this.#likelyMs(size, deviations) <= ms) most = size;
    return most;
  }

  *#sizes(): Generator<number, void> {
    const most = this.#fullSize;
    for (let size = 1; size < most; size = nextSize(size)) yield size;
    yield most;
  }
}
