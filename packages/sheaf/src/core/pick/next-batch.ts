import type { CostModel } from "../../policies/cost-model.ts";
import type { Settings } from "../contract/settings.ts";
import type { SizeReason } from "../../policies/policy.ts";
import { Batch, weightsOf } from "../queue/entry.ts";
import type { Group } from "../queue/group.ts";
import type { Queue } from "../queue/queue.ts";
import type { BatchLimits, Costs } from "./composition.ts";
import type { Background } from "./background.ts";
import { Selection, type Preview } from "./selection.ts";
import type { StandingOverload } from "./standing-overload.ts";
import { takeTurns } from "./by-turns.ts";

type BatchSettings = Pick<
  Settings<never, never>,
  "maxBatchSize" | "maxBatchWeight" | "batchWeight" | "weigh" | "dedupe"
>;

/**
 * Decides *which* items go: lanes, order and weight matter here and nowhere else. The scheduler decides when they go.
 */
export class NextBatch<In> {
  readonly #settings: BatchSettings;
  readonly #limits: { -readonly [Name in keyof BatchLimits]: BatchLimits[Name] };
  readonly #queue: Queue<In>;
  readonly #overload: StandingOverload<In> | undefined;
  readonly #background: Background<In>;
  /** Made when the first batch needs a choice item by item. */
  #selection: Selection<In> | undefined;

  /** `overload`: `undefined` where the order of arrival is always kept. */
  constructor(
    settings: BatchSettings,
    queue: Queue<In>,
    overload: StandingOverload<In> | undefined,
    background: Background<In>,
  ) {
    const { maxBatchSize, maxBatchWeight = Infinity, batchWeight } = settings;
    this.#settings = settings;
    this.#limits = { maxBatchSize, maxBatchWeight, padded: batchWeight === "padded", fill: undefined, onlyBulk: false };
    this.#queue = queue;
    this.#overload = overload;
    this.#background = background;
  }

  /** The next batch may weigh at most this much under the rate limit. */
  boundWeight(most: number): void {
    const { weigh, maxBatchWeight = Infinity } = this.#settings;
    if (weigh !== undefined) this.#limits.maxBatchWeight = Math.min(maxBatchWeight, most);
  }

  /** Which lanes the next batch may hold, and how much bulk beside live calls. */
  boundBulk(fill: BatchLimits["fill"], onlyBulk: boolean): void {
    this.#limits.fill = fill;
    this.#limits.onlyBulk = onlyBulk;
  }

  /** The next batch of this group, as it could be; `waiting` is 0 where all are blocked. `costs`: where weights explain them. */
  preview(group: Group<In>, nowMs: number, costs: Costs | undefined): Preview {
    const { maxBatchSize } = this.#limits;
    // Also while one batch takes all that waits: growth is seen from its start.
    group.newestFirst = this.#overload !== undefined && this.#overload.isNewestFirst(group, nowMs);
    if (this.#isRow(group, costs)) {
      const { waiting, oldestAtMs } = group.mayGo(this.#limits);
      const bulk = group.laneQueue(2).live;
      return {
        waiting,
        oldestAtMs,
        capacity: bulk === 0 ? maxBatchSize : Math.min(maxBatchSize, this.#shared(group, bulk, nowMs)),
        weight: waiting,
        closedByWeight: false,
        isAlone: false,
        withImmediate: !this.#limits.onlyBulk && group.laneQueue(0).live > 0,
      };
    }
    return this.#chooser().preview(group, nowMs, costs);
  }

  /** Most items of the next batch of a group with bulk. */
  #shared(group: Group<In>, bulk: number, nowMs: number): number {
    if (this.#limits.onlyBulk) return this.#background.size(nowMs);
    const turn = this.#limits.fill === undefined ? Math.min(bulk, this.#background.turn(group)) : 0;
    return Math.max(group.waiting - bulk + turn, this.#background.limit(group, nowMs));
  }

  /** The expected run time of the first `size` items of the last preview. */
  nextMs(cost: CostModel, size: number): number {
    return this.#selection === undefined ? cost.at(size) : this.#selection.nextMs(cost, size);
  }

  /** Takes the next batch of a group: at least 1 item, at most `limit`; `undefined` where all are blocked. `onlyAlone`: one that is. */
  take(
    group: Group<In>,
    limit: number,
    nowMs: number,
    costs: Costs | undefined,
    onlyAlone: boolean = false,
  ): Batch<In> | undefined {
    if (group.waiting === 0) return undefined; // a policy may have aborted its items
    const most = Math.max(1, Math.min(limit, this.#limits.maxBatchSize));
    const batch = this.#takeRow(group, most, costs) ?? this.#chooser().take(group, most, nowMs, costs, onlyAlone);
    if (batch === undefined) return undefined;
    if (this.#queue.hasWeights) batch.weights = weightsOf(batch.entries);
    this.#leaveKeys(batch);
    this.#queue.served(group, batch.entries.length);
    return batch;
  }

  #chooser(): Selection<In> {
    return (this.#selection ??= new Selection(this.#limits, this.#queue, this.#background));
  }

  /** Everything in front can go, in one batch. */
  #isRow(group: Group<In>, costs: Costs | undefined): boolean {
    return (
      !group.newestFirst &&
      costs === undefined &&
      this.#queue.order === undefined &&
      this.#limits.maxBatchWeight === Infinity &&
      this.#queue.alone === 0
    );
  }

  /** The usual case, one lane and nothing to skip: takes its front without choosing item by item. */
  #takeRow(group: Group<In>, limit: number, costs: Costs | undefined): Batch<In> | undefined {
    if (!this.#isRow(group, costs)) return undefined;
    const [immediate, interactive, bulk] = group.laneQueues;
    const laneQueue = interactive.live > 0 ? interactive : immediate.live > 0 ? immediate : bulk;
    if (laneQueue.live !== group.waiting) return undefined;
    if (laneQueue.turns !== undefined) return takeTurns(this.#queue, laneQueue, laneQueue.turns, limit);
    const size = Math.min(limit, laneQueue.live);
    const batch = new Batch<In>(size);
    for (let left = size; left > 0; left--) this.#queue.take(laneQueue.head!, laneQueue, batch);
    return batch;
  }

  /** The batch's items no longer wait: the batch holds their order keys, and equal items start again on their own. */
  #leaveKeys(batch: Batch<In>): void {
    const { order, equal } = this.#queue;
    if (order === undefined && equal === undefined) return;
    for (const entry of batch.entries) {
      if (entry.ties?.order !== undefined) order!.taken(entry.ties, batch);
      if (this.#settings.dedupe !== "running") entry.ties?.equal?.leave(entry);
    }
  }
}

/** The batch that has just been taken, and the items left. */
interface Taken {
  readonly size: number;
  /** Items that the policy asked for, and the most that limits allowed. */
  readonly asked: number;
  readonly capacity: number;
  /** Waiting items of the batch's group, and of all groups, after it was taken. */
  readonly leftInGroup: number;
  readonly left: number;
}

/** Why the batch holds no more items: the first limit that closed it. */
export function sizeReasonOf(
  { size, asked, capacity, leftInGroup, left }: Taken,
  { isAlone, closedByWeight }: Pick<Preview, "isAlone" | "closedByWeight">,
  maxBatchSize: number,
): SizeReason {
  if (isAlone) return "alone";
  if (size >= maxBatchSize) return "full";
  if (leftInGroup === 0) return left === 0 ? "all" : "group";
  if (size >= asked && asked < capacity) return "cost";
  if (size < asked) return "order";
  return closedByWeight ? "weight" : "limit";
}
