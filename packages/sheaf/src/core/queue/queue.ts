import { Group, type LaneQueue } from "./group.ts";
import { Chunk, type ChunkList, type Settler, Epochs, type Epoch } from "./chunk.ts";
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
  "clock" | "name" | "maxBatchSize" | "maxQueueSize" | "groupKey" | "fairKey" | "orderKey" | "dedupeKey"
>;

/**
 * Owns the waiting calls, from entry until each is taken or leaves: in which group, lane and chunk it is.
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
  /** Entries of a full chunk. */
  readonly chunkSize: number;
  readonly epochs: Epochs = new Epochs();
  readonly cancellation: Cancellation<In>;
  /** Its calls so far, by how they ended. */
  readonly tally: Record<Outcome, number> = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
  /** The one group of a batcher without groupKey, which is never forgotten. */
  readonly onlyGroup: Group<In> | undefined;
  /** With `groupKey`. */
  readonly #groups: Groups<In> | undefined;
  /** With `fairKey`. */
  readonly tenants: Tenants<In> | undefined;
  /** With `orderKey`. */
  readonly order: OrderKeys<In> | undefined;
  /** With `dedupeKey`. */
  readonly equal: EqualItems<In> | undefined;

  constructor(settings: QueueSettings<In>) {
    const { maxBatchSize, maxQueueSize, groupKey, fairKey, orderKey, dedupeKey } = settings;
    // A chunk of the size of a full batch becomes one without a copy.
    this.chunkSize = Math.min(maxBatchSize, 256);
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

  /** Appends an item, at `count - 1` of the returned chunk. */
  push(item: In, settler: Settler, arrivedAtMs: number, laneQueue: LaneQueue<In>, epoch: Epoch): Chunk<In> {
    const chunk = this.tail(laneQueue, epoch);
    chunk.settlers[chunk.count] = settler;
    this.fill(chunk, laneQueue, item, arrivedAtMs);
    return chunk;
  }

  /** The chunk that the next entry of this lane queue, or of its blocked calls, goes into. */
  tail(laneQueue: LaneQueue<In>, epoch: Epoch, row: ChunkList<In> = laneQueue): Chunk<In> {
    const { tail } = row;
    if (tail !== undefined && tail.count < this.chunkSize && tail.epoch === epoch) return tail;
    // A full chunk is often followed by another.
    const chunk = new Chunk<In>(epoch, laneQueue, tail === undefined ? 0 : this.chunkSize);
    row.append(chunk);
    return chunk;
  }

  /** Completes the next entry of `tail`, whose settler is in its place already. */
  fill(chunk: Chunk<In>, laneQueue: LaneQueue<In>, item: In, arrivedAtMs: number): void {
    chunk.fill(item, arrivedAtMs);
    if (laneQueue.lane === 2) this.bulkArrived++;
    this.#count(laneQueue, chunk.epoch, 1);
    chunk.epoch.unsettled++;
  }

  /** Notes the weight of the last entry of a waiting chunk, and when it is due. */
  weigh(chunk: Chunk<In>, weight: number, dueAtMs: number): void {
    chunk.weigh(chunk.count - 1, weight, dueAtMs);
    this.#weights[chunk.laneQueue!.lane] += weight;
  }

  /** The entry shares its batch with no other. */
  isolate(chunk: Chunk<In>, index: number): void {
    (chunk.alone ??= [])[index] = true;
    this.alone++;
  }

  /** An entry of a waiting chunk has been taken or has left, and its place is empty already. */
  removed(chunk: Chunk<In>, index: number): void {
    const laneQueue = chunk.laneQueue!;
    if (chunk.alone?.[index] === true) this.alone--;
    if (chunk.lifted?.[index] === true) this.inBulkRoom--;
    if (chunk.weights !== undefined) this.#weights[laneQueue.lane] -= chunk.weights[index]!;
    this.#count(laneQueue, chunk.epoch, -1);
    if (chunk.live > 0) return;
    chunk.list!.unlink(chunk);
    if (this.#groups !== undefined && laneQueue.group.waiting === 0) this.#groups.forget(laneQueue.group);
  }

  /** The last caller of a waiting entry has left it after so long; its place is empty already. */
  leave(chunk: Chunk<In>, index: number, waitedMs: number): void {
    const atMs = chunk.arrivedAtMs(index) + waitedMs;
    this.leavers.left(atMs, waitedMs);
    chunk.claims?.[index]?.tenant.leavers.left(atMs, waitedMs);
    this.tenants?.left(chunk, index);
    this.removed(chunk, index);
  }

  /** Moves a waiting entry to the end of a higher lane of its group. */
  promote(chunk: Chunk<In>, index: number, lane: Lane): void {
    const laneQueue = chunk.laneQueue!;
    if (lane >= laneQueue.lane) return;
    const target = laneQueue.group.laneQueue(lane);
    target.keepAge(chunk.arrivedAtMs(index));
    const to = this.#moveWithin(chunk, index, target, target);
    if (laneQueue.lane === 2) {
      (to.lifted ??= [])[to.count - 1] = true;
      this.inBulkRoom++;
    }
    const ref = chunk.refs![index]!; // only entries that can be found again are promoted
    if (this.order !== undefined) ref.place = this.order.nextPlace();
  }

  /** Moves a waiting entry to the end of its lane. */
  renew(chunk: Chunk<In>, index: number): void {
    const laneQueue = chunk.laneQueue!;
    laneQueue.keepAge(chunk.arrivedAtMs(index));
    this.#moveWithin(chunk, index, laneQueue, laneQueue);
  }

  /** Its order key blocks it: it leaves the lane queue until it is the first of a key that no batch holds. */
  setAside(chunk: Chunk<In>, index: number): void {
    const laneQueue = chunk.laneQueue!;
    this.#moveWithin(chunk, index, laneQueue, (laneQueue.blocked ??= new BlockedCalls<In>(this.tenants)));
  }

  /** Takes the chunk at the head of a lane queue as a batch; all its entries must be live. */
  takeHead(laneQueue: LaneQueue<In>): Chunk<In> {
    const head = laneQueue.head!;
    if (head.weights !== undefined)
      this.#weights[laneQueue.lane] -= head.weights.reduce((sum, weight) => sum + weight, 0);
    head.lifted?.forEach(() => this.inBulkRoom--);
    this.#count(laneQueue, head.epoch, -head.count);
    if (laneQueue.lane !== 1) head.lanes = new Array<Lane>(head.count).fill(laneQueue.lane);
    laneQueue.unlink(head);
    if (head.items.length > head.count) head.items.length = head.count; // there was room for more
    return head;
  }

  /** Moves a live waiting entry, with everything that belongs to it, to the end of another chunk. */
  move(from: Chunk<In>, index: number, to: Chunk<In>): void {
    const { lane } = from.laneQueue!;
    if (lane !== 1 && to.laneQueue === undefined) (to.lanes ??= [])[to.count] = lane;
    if (from.refs !== undefined) from.laneQueue!.blocked?.withdraw(from.refs[index]!);
    this.tenants?.moved(from, index, to, to.count);
    this.transfer(from, index, to);
    this.removed(from, index);
  }

  /** Moves a live entry, with everything that belongs to it, to the end of another chunk. */
  transfer(from: Chunk<In>, index: number, to: Chunk<In>): void {
    const at = to.count;
    const epoch = from.epochOf(index);
    if (to.epochs !== undefined) to.epochs[at] = epoch;
    else if (to.epoch !== epoch) {
      if (at === 0) to.epoch = epoch;
      else (to.epochs = new Array<Epoch>(at).fill(to.epoch))[at] = epoch;
    }
    to.push(from.items[index]!, from.settlers[index]!, from.arrivedAtMs(index));
    if (from.weights !== undefined) to.weigh(at, from.weights[index]!, from.duesAtMs![index]!);
    if (from.tags?.[index] !== undefined) (to.tags ??= [])[at] = from.tags[index];
    if (from.alone?.[index] === true) (to.alone ??= [])[at] = true;
    if (from.lifted?.[index] === true) (to.lifted ??= [])[at] = true;
    if (from.putBacks?.[index] !== undefined) (to.putBacks ??= [])[at] = from.putBacks[index];
    if (from.refs !== undefined) {
      const ref = from.refs[index]!;
      (to.refs ??= [])[at] = ref;
      ref.chunk = to;
      ref.index = at;
    }
    this.cancellation.move(from, index, to, at);
    from.items[index] = undefined as In;
    this.cancellation.leave(from, index);
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
    this.everyChunk((chunk) => {
      let calls = chunk.live;
      for (let i = chunk.head; chunk.refs !== undefined && i < chunk.count; i++) {
        const duplicates = chunk.settlers[i] === undefined ? undefined : chunk.refs[i]?.duplicates;
        if (duplicates === undefined) continue;
        calls += duplicates.live;
        duplicates.epoch = epoch;
      }
      this.epochs.takeOver(chunk.epoch, epoch, calls);
      chunk.epoch = epoch;
    });
    this.release("flush");
  }

  /** The visitor may empty the chunk. */
  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    this.#everyGroup((group) => group.everyChunk(visit));
  }

  #everyGroup(visit: (group: Group<In>) => void): void {
    if (this.onlyGroup !== undefined) visit(this.onlyGroup);
    else for (const group of this.#groups!.all()) visit(group);
  }

  #moveWithin(chunk: Chunk<In>, index: number, laneQueue: LaneQueue<In>, row: ChunkList<In>): Chunk<In> {
    const epoch = chunk.epochOf(index);
    const to = this.tail(laneQueue, epoch, row);
    // Enter first, then leave: a group in which nothing waits for a moment would be forgotten.
    this.enters(chunk, index, laneQueue);
    this.move(chunk, index, to);
    return to;
  }

  /** Counts an entry that is about to wait in this lane queue, whether it comes from another or from a batch. */
  enters(from: Chunk<In>, index: number, laneQueue: LaneQueue<In>): void {
    this.#count(laneQueue, from.epochOf(index), 1);
    if (from.weights !== undefined) this.#weights[laneQueue.lane] += from.weights[index]!;
    if (from.alone?.[index] === true) this.alone++;
    if (from.lifted?.[index] === true) this.inBulkRoom++;
  }

  #count(laneQueue: LaneQueue<In>, epoch: Epoch, calls: number): void {
    this.version++;
    this.size += calls;
    if (laneQueue.lane === 2) this.inBulkRoom += calls;
    laneQueue.count(calls);
    this.#inLane[laneQueue.lane] += calls;
    // Sums of fractions drift.
    if (this.#inLane[laneQueue.lane] === 0) this.#weights[laneQueue.lane] = 0;
    if (epoch.release === undefined) return;
    laneQueue.group.released += calls;
    laneQueue.group.releasedBy = epoch.release;
  }
}
