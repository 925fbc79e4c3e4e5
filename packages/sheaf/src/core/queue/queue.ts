import { Group, type LaneQueue } from "./group.ts";
import type { Batch, Entry, EntryList } from "./entry.ts";
import type { Epoch } from "./epoch.ts";
import { Epochs } from "./epochs.ts";
import { EqualItems } from "./equal-items.ts";
import { Groups } from "./groups.ts";
import { defaults } from "../contract/options.ts";
import type { Settings, Lane } from "../contract/settings.ts";
import { Leavers } from "./leavers.ts";
import { BlockedCalls, OrderKeys } from "./order-keys.ts";
import { Cancellation, type Outcome } from "./cancellation.ts";
import { Tenants } from "./tenants.ts";

type QueueSettings<In> = Pick<
  Settings<In, never>,
  "clock" | "name" | "maxQueueSize" | "weigh" | "groupKey" | "fairKey" | "orderKey" | "dedupeKey"
>;

/**
 * Owns the waiting calls, from entry until each is taken or leaves: in which group and lane it is.
 * `NextBatch` decides which of them go next.
 */
export class Queue<In> {
  /** Items waiting. */
  size = 0;
  /** Those of them that take the room of bulk calls: also where an item of another lane has lifted them out of theirs. */
  inBulkRoom = 0;
  /** Most items of the live lanes that may wait, and most of bulk. `"auto"`: the default until run times are known, then computed from them. */
  maxSize: number;
  /** Counts every change of what waits, and where. */
  version = 0;
  /** Bulk items that have arrived, and those that have been taken. */
  bulkArrived = 0;
  bulkTaken = 0;
  /** Items refused for want of room or time. */
  readonly refused: { live: number; bulk: number } = { live: 0, bulk: 0 };
  /** Items that have been taken as part of a batch. */
  taken = 0;
  /** Items that have left without running. */
  readonly leavers: Leavers = new Leavers();
  /** Those of them that share their batch with no other item. */
  alone = 0;
  /** Waiting items by lane. */
  readonly #inLane: [number, number, number] = [0, 0, 0];
  /** Their weights together; 0 without `weigh`. */
  readonly #weights: [number, number, number] = [0, 0, 0];
  readonly epochs: Epochs = new Epochs();
  readonly cancellation: Cancellation<In>;
  /** Its calls so far, by how they ended. */
  readonly tally: Record<Outcome, number> = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
  /** The one group of a batcher without groupKey, which is never forgotten. */
  readonly onlyGroup: Group<In> | undefined;
  readonly hasWeights: boolean;
  /** With `groupKey`. */
  readonly #groups: Groups<In> | undefined;
  /** With `fairKey`. */
  readonly tenants: Tenants<In> | undefined;
  /** With `orderKey`. */
  readonly order: OrderKeys<In> | undefined;
  /** With `dedupeKey`. */
  readonly equal: EqualItems<In> | undefined;

  constructor(settings: QueueSettings<In>) {
    const { weigh, maxQueueSize, groupKey, fairKey, orderKey, dedupeKey } = settings;
    this.hasWeights = weigh !== undefined;
    this.maxSize = maxQueueSize === "auto" ? defaults.maxQueueSize : maxQueueSize;
    this.cancellation = new Cancellation(settings, this);
    const byTurns = fairKey !== undefined;
    this.tenants = byTurns ? new Tenants<In>() : undefined;
    this.order = orderKey === undefined ? undefined : new OrderKeys<In>();
    this.equal = dedupeKey === undefined ? undefined : new EqualItems<In>();
    this.#groups = groupKey === undefined ? undefined : new Groups(byTurns);
    this.onlyGroup = groupKey === undefined ? new Group<In>(undefined, byTurns) : undefined;
  }

  /** Items so far, wherever they are now. */
  get arrived(): number {
    return this.size + this.leavers.count + this.taken;
  }

  /** The first deadline of those who wait, in the queue or for room, or run; `Infinity` without one. */
  get nextDeadlineAtMs(): number {
    return this.cancellation.deadlines?.firstAtMs ?? Infinity;
  }

  groupOf(key: unknown): Group<In> {
    return this.onlyGroup ?? this.#groups!.of(key);
  }

  /** Waiting items of the bulk lane. */
  get bulkWaiting(): number {
    return this.#inLane[2];
  }

  /** Arrival of its oldest item; `Infinity` without one. */
  get oldestBulkAtMs(): number {
    let oldestAtMs = Infinity;
    if (this.bulkWaiting > 0)
      this.#everyGroup((group) => (oldestAtMs = Math.min(oldestAtMs, group.laneQueue(2).oldestAtMs())));
    return oldestAtMs;
  }

  /** Items in a lane and the lanes above it. */
  ahead(lane: Lane): number {
    return lane === 2 ? this.size : this.#inLane[0] + (lane && this.#inLane[1]);
  }

  /** The weight of all waiting items; 0 without `weigh`. */
  get weight(): number {
    return this.weightAhead(2);
  }

  /** The weight of the items in a lane and in the lanes above it. */
  weightAhead(lane: Lane): number {
    const [immediate, interactive, bulk] = this.#weights;
    return immediate + (lane > 0 ? interactive : 0) + (lane > 1 ? bulk : 0);
  }

  /** Visits groups in the order in which they should be served, those with bulk first where it is `owed`; stops when `visit` returns true. */
  everyGroup(owed: boolean, visit: (group: Group<In>) => boolean): boolean {
    if (owed) for (const group of this.#groupsInTurn(2)) if (group.laneQueue(2).live > 0 && visit(group)) return true;
    // Immediate items go before all others, and a group with nothing but bulk goes last.
    for (let lane: Lane = this.#inLane[0] > 0 ? 0 : 1; lane <= 2; lane++) {
      for (const group of this.#groupsInTurn(lane)) if (group.firstLane === lane && visit(group)) return true;
    }
    return false;
  }

  #groupsInTurn(lane: number): Iterable<Group<In>> {
    return this.tenants === undefined ? this.#groups!.inTurn() : this.#groups!.byTurns(lane as Lane);
  }

  /** A batch of this group has been taken. */
  served(group: Group<In>, items: number): void {
    this.taken += items;
    this.#groups?.served(group);
  }

  /** A call enters. */
  push(entry: Entry<In>, laneQueue: LaneQueue<In>): void {
    if (laneQueue.lane === 2) this.bulkArrived++;
    entry.epoch.unsettled++;
    this.#count(entry, laneQueue, 1);
    laneQueue.insert(entry);
  }

  /** A waiting entry goes in a batch. */
  take(entry: Entry<In>, laneQueue: LaneQueue<In>, batch: Batch<In>): void {
    if (entry.ties?.order !== undefined) laneQueue.blocked?.withdraw(entry);
    this.tenants?.left(entry);
    if (laneQueue.lane === 2) batch.bulk++;
    this.#remove(entry, laneQueue);
    entry.place = batch;
    batch.entries[batch.live++] = entry;
  }

  /** The last caller of a waiting entry has left it after so long. */
  leave(entry: Entry<In>, waitedMs: number): void {
    const atMs = entry.terms.arrivedAtMs + waitedMs;
    this.leavers.left(atMs, waitedMs);
    entry.keys?.claim?.tenant.leavers.left(atMs, waitedMs);
    this.tenants?.left(entry);
    this.#remove(entry, entry.laneQueue!);
  }

  /** An entry of a batch that did not run waits again, in front of `next`. */
  putBack(entry: Entry<In>, laneQueue: LaneQueue<In>, next: Entry<In> | undefined): void {
    this.taken--;
    if (laneQueue.lane === 2) this.bulkTaken--;
    this.#count(entry, laneQueue, 1);
    laneQueue.insert(entry, next);
    this.tenants?.putBack(entry);
  }

  /** Moves a waiting entry to the end of a higher lane of its group. */
  promote(entry: Entry<In>, lane: Lane): void {
    const from = entry.laneQueue!;
    if (lane >= from.lane) return;
    this.#move(entry, from.group.laneQueue(lane));
    if (this.order !== undefined) entry.tie().rank = this.order.nextRank();
  }

  /** Moves a waiting entry to the end of its lane. */
  renew(entry: Entry<In>): void {
    this.#move(entry, entry.laneQueue!);
  }

  /** Its order key blocks it: it leaves the lane queue until it is the first of a key that no batch holds. */
  setAside(entry: Entry<In>): void {
    const laneQueue = entry.laneQueue!;
    const blocked = (laneQueue.blocked ??= new BlockedCalls<In>(laneQueue, this.tenants));
    this.version++;
    blocked.withdraw(entry);
    (entry.place as EntryList<In>).unlink(entry);
    blocked.insert(entry);
    this.tenants?.moved(entry);
  }

  #move(entry: Entry<In>, laneQueue: LaneQueue<In>): void {
    const list = entry.place as EntryList<In>;
    const from = list.laneQueue;
    const keys = entry.keys!; // only entries that can be found again move
    if (entry.ties?.order !== undefined) from.blocked?.withdraw(entry);
    if (keys.claim !== undefined) this.tenants!.counts(entry, -1);
    laneQueue.keepAge(entry.terms.arrivedAtMs);
    // Out, then in: a lane queue in which nothing waits for a moment forgets the age of its items.
    const { outOfPlaceAtMs } = laneQueue;
    this.#count(entry, from, -1);
    list.unlink(entry);
    if (laneQueue !== from) {
      const ties = entry.tie();
      ties.isLifted ||= from.lane === 2;
      ties.lane = laneQueue.lane;
    }
    laneQueue.keepAge(outOfPlaceAtMs);
    this.#count(entry, laneQueue, 1);
    laneQueue.insert(entry);
    if (keys.claim === undefined) return;
    this.tenants!.counts(entry, 1);
    this.tenants!.moved(entry);
  }

  /** Releases everything that waits now: it goes without further holding. */
  release(reason: "flush" | "drain"): void {
    this.#everyGroup((group) => {
      group.released = group.waiting;
      group.releasedBy = reason;
    });
  }

  /** Moves everything that waits now to this epoch, and releases it. */
  relabel(epoch: Epoch): void {
    for (const entry of this.entries()) {
      this.epochs.takeOver(entry.epoch, epoch, 1);
      entry.epoch = epoch;
      for (const sharer of entry.ties?.sharers ?? []) {
        if (sharer.settler !== undefined) this.epochs.takeOver(sharer.epoch, epoch, 1);
        sharer.epoch = epoch;
      }
    }
    this.release("flush");
  }

  /** All that wait; copy them to remove some. */
  *entries(): Generator<Entry<In>, void> {
    if (this.onlyGroup !== undefined) yield* this.onlyGroup.entries();
    else for (const group of this.#groups!.all()) yield* group.entries();
  }

  #everyGroup(visit: (group: Group<In>) => void): void {
    if (this.onlyGroup !== undefined) visit(this.onlyGroup);
    else for (const group of this.#groups!.all()) visit(group);
  }

  #remove(entry: Entry<In>, laneQueue: LaneQueue<In>): void {
    this.#count(entry, laneQueue, -1);
    (entry.place as EntryList<In>).unlink(entry);
    if (this.#groups !== undefined && laneQueue.group.waiting === 0) this.#groups.forget(laneQueue.group);
  }

  /** One more waits in this lane queue, or one less. */
  #count(entry: Entry<In>, laneQueue: LaneQueue<In>, items: 1 | -1): void {
    const { lane } = laneQueue;
    this.version++;
    this.size += items;
    this.#inLane[lane] += items;
    laneQueue.count(items);
    if (lane === 2 || entry.ties?.isLifted === true) this.inBulkRoom += items;
    if (entry.terms.alone) this.alone += items;
    // Sums of fractions drift.
    if (this.hasWeights)
      this.#weights[lane] = this.#inLane[lane] === 0 ? 0 : this.#weights[lane] + items * entry.weight;
    const { release } = entry.epoch;
    if (release === undefined) return;
    laneQueue.group.released += items;
    laneQueue.group.releasedBy = release;
  }
}
