import { Chunk, type Settler } from "./chunk.ts";
import type { Epoch, Epochs } from "./epoch.ts";
import { Group } from "./group.ts";
import { invariant } from "./invariant.ts";
import type { Lane, Line } from "./line.ts";
import type { OrderKey, OrderKeys } from "./order.ts";
import type { Watch } from "./watch.ts";

/** A bulk item that has waited this long counts as interactive: nothing waits for ever. */
const bulkPromotionMs = 5000;

/**
 * A new group goes ahead of those served in the last batches, this many: a stream
 * of new groups must not starve one that was served.
 */
const newGroupHeadStart = 16;

/** What may go in one batch. */
export interface BatchLimits {
  readonly maxBatchSize: number;
  readonly maxBatchWeight: number;
  readonly padded: boolean;
}

/** What the next batch of a group would be. Reused between calls. */
export interface Preview {
  /** Items that could go; more than fit where counting them all would cost a scan. */
  waiting: number;
  oldestAtMs: number;
  /** Most items the batch can hold: fewer than maxBatchSize where its weight closes it. */
  capacity: number;
  /** Weight of what could go; the number of items without weights. */
  weight: number;
  closedByWeight: boolean;
}

/**
 * Owns *which* items go: lanes, groups, order and weight are known here and nowhere else. When they go is the
 * scheduler's.
 */
export class Queue<In> {
  /** Items waiting. */
  size = 0;
  /** Those of them that are immediate. */
  immediate = 0;
  readonly #limits: BatchLimits;
  readonly #chunkSize: number;
  readonly #epochs: Epochs;
  readonly #watch: Watch<In>;
  readonly #order: OrderKeys<In> | undefined;
  /** The one group of a batcher without groupKey, which is never forgotten. */
  readonly #only: Group<In> | undefined;
  // New groups and those that were served, each in order of turn: the smallest turn goes first.
  readonly #fresh: Map<unknown, Group<In>> = new Map();
  readonly #served: Map<unknown, Group<In>> = new Map();
  #turn = 0;
  readonly #preview: Preview = { waiting: 0, oldestAtMs: 0, capacity: 0, weight: 0, closedByWeight: false };
  /** The chosen entries of #choose, in order. */
  readonly #chosenChunks: Chunk<In>[] = [];
  readonly #chosenIndices: number[] = [];
  #chosenWeight = 0;
  #closedByWeight = false;

  constructor(
    limits: BatchLimits,
    epochs: Epochs,
    watch: Watch<In>,
    order: OrderKeys<In> | undefined,
    grouped: boolean,
  ) {
    this.#limits = limits;
    // A chunk that fills up just as a batch does becomes one without a copy.
    this.#chunkSize = Math.min(limits.maxBatchSize, 256);
    this.#epochs = epochs;
    this.#watch = watch;
    this.#order = order;
    this.#only = grouped ? undefined : new Group<In>(undefined);
  }

  groupOf(key: unknown): Group<In> {
    if (this.#only !== undefined) return this.#only;
    const known = this.#served.get(key) ?? this.#fresh.get(key);
    if (known !== undefined) return known;
    const group = new Group<In>(key);
    group.turn = this.#turn - newGroupHeadStart;
    this.#fresh.set(key, group);
    return group;
  }

  /** Appends an item; it stands at `count - 1` of the returned chunk. */
  push(item: In, settler: Settler, arrivedAtMs: number, line: Line<In>, epoch: Epoch): Chunk<In> {
    const chunk = this.tail(line, epoch);
    chunk.settlers[chunk.count] = settler;
    this.fill(chunk, line, item, arrivedAtMs);
    return chunk;
  }

  /** The chunk whose next entry is the next of this line. */
  tail(line: Line<In>, epoch: Epoch): Chunk<In> {
    const { tail } = line;
    if (tail !== undefined && tail.count < this.#chunkSize && tail.epoch === epoch) return tail;
    // Behind a full chunk comes another, as often as not.
    const chunk = new Chunk<In>(epoch, line, tail === undefined ? 0 : this.#chunkSize);
    line.append(chunk);
    return chunk;
  }

  /** Completes the next entry of `tail`, whose settler stands in its place already. */
  fill(chunk: Chunk<In>, line: Line<In>, item: In, arrivedAtMs: number): void {
    chunk.fill(item, arrivedAtMs);
    line.live++;
    this.size++;
    if (line.lane === 0) this.immediate++;
    chunk.epoch.unsettled++;
  }

  /** An entry of a waiting chunk has been taken or has gone: whoever did it has emptied its place. */
  removed(chunk: Chunk<In>): void {
    const line = chunk.line!;
    line.live--;
    this.size--;
    if (line.lane === 0) this.immediate--;
    if (chunk.live > 0) return;
    line.unlink(chunk);
    if (this.#only === undefined && line.live === 0 && line.group.waiting === 0) {
      this.#fresh.delete(line.group.key);
      this.#served.delete(line.group.key);
    }
  }

  /** Moves a waiting entry to the end of a higher lane of its group. */
  promote(chunk: Chunk<In>, index: number, lane: Lane): void {
    const line = chunk.line!;
    if (lane >= line.lane) return;
    const target = line.group.line(lane);
    const tail = this.tail(target, chunk.epochOf(index));
    target.live++;
    this.size++;
    if (lane === 0) this.immediate++;
    target.promotedAtMs = Math.min(target.promotedAtMs, chunk.arrivedAtMs(index));
    this.#move(chunk, index, tail);
  }

  /** The one group of a batcher without groupKey. */
  get onlyGroup(): Group<In> | undefined {
    return this.#only;
  }

  /** Groups in the order in which they should be served; stops when `visit` returns true. */
  everyGroup(nowMs: number, visit: (group: Group<In>) => boolean): boolean {
    // Immediate items go before all others, and a group with nothing but bulk goes last.
    for (let lane: Lane = this.immediate > 0 ? 0 : 1; lane <= 2; lane++) {
      for (const group of this.#inTurn()) if (firstLane(group, nowMs) === lane && visit(group)) return true;
    }
    return false;
  }

  /** Seen from a free slot: what the next batch of this group could be; `waiting` is 0 where all are blocked. */
  preview(group: Group<In>, nowMs: number): Preview {
    const preview = this.#preview;
    preview.capacity = this.#limits.maxBatchSize;
    preview.closedByWeight = false;
    if (this.#order === undefined && this.#limits.maxBatchWeight === Infinity) {
      preview.waiting = group.waiting;
      preview.oldestAtMs = oldestOf(group);
      preview.weight = preview.waiting;
      return preview;
    }
    const count = this.#choose(group, this.#limits.maxBatchSize, nowMs);
    preview.waiting = count;
    preview.closedByWeight = this.#closedByWeight;
    preview.weight = this.#chosenWeight;
    if (this.#closedByWeight) preview.capacity = count;
    // All of them, blocked ones too: what is beyond the next batch only tells a policy how long the queue is.
    if (count === preview.capacity)
      preview.waiting = Math.max(count, this.#order === undefined ? group.waiting : count);
    preview.oldestAtMs = Infinity;
    for (let i = 0; i < count; i++) {
      const arrivedAtMs = this.#chosenChunks[i]!.arrivedAtMs(this.#chosenIndices[i]!);
      if (arrivedAtMs < preview.oldestAtMs) preview.oldestAtMs = arrivedAtMs;
    }
    return preview;
  }

  /**
   * Calls back with waiting entries, oldest first in each lane, whose deadline is before `beforeMs`, until one is in time
   * or only one entry of the group is left. The visitor withdraws the caller.
   */
  everyLate(group: Group<In>, beforeMs: number, visit: (chunk: Chunk<In>, index: number) => void): void {
    // The highest lane last: the one that is left is the youngest of those.
    for (let lane = 2; lane >= 0; lane--) {
      const line = group.lines[lane]!;
      for (let chunk = line.head; chunk !== undefined;) {
        const { next } = chunk; // the visitor may empty the chunk, which unlinks it
        const { deadlinesMs } = chunk;
        for (let i = chunk.head; i < chunk.count; i++) {
          // A caller that goes can hand its place to one who shares the item: look again until it is empty or in time.
          while (chunk.settlers[i] !== undefined) {
            if (group.waiting <= 1) return;
            if (!((deadlinesMs?.[i] ?? Infinity) < beforeMs)) break;
            visit(chunk, i);
          }
          if (chunk.settlers[i] !== undefined) break;
        }
        if (chunk.live > 0) break;
        chunk = next;
      }
    }
  }

  /** The earliest deadline among the first waiting calls of each lane; `Infinity` without one. */
  earliestDeadlineMs(group: Group<In>): number {
    let earliest = Infinity;
    for (const { head } of group.lines) {
      if (head?.deadlinesMs === undefined) continue;
      for (let i = head.head; i < head.count; i++) {
        if (head.settlers[i] !== undefined) earliest = Math.min(earliest, head.deadlinesMs[i] ?? Infinity);
      }
    }
    return earliest;
  }

  /** Takes the next batch of a group: at least 1 item, at most `limit`; `undefined` where all are blocked. */
  take(group: Group<In>, limit: number, nowMs: number): Chunk<In> | undefined {
    const most = Math.max(1, Math.min(limit, this.#limits.maxBatchSize));
    const batch = this.#takeRow(group, most) ?? this.#takeChosen(group, most, nowMs);
    if (batch === undefined) return undefined;
    invariant(batch.count >= 1 && batch.count <= most, "a batch holds 1 to maxBatchSize items");
    if (this.#only === undefined) this.#markServed(group);
    return batch;
  }

  /** Everything that waits now counts in this epoch from now on. */
  relabel(epoch: Epoch): void {
    this.everyChunk((chunk) => {
      let calls = chunk.live;
      for (let i = chunk.head; chunk.slots !== undefined && i < chunk.count; i++) {
        const sharers = chunk.settlers[i] === undefined ? undefined : chunk.slots[i]?.sharers;
        if (sharers === undefined) continue;
        calls += sharers.live;
        sharers.epoch = epoch;
      }
      this.#epochs.takeOver(chunk.epoch, epoch, calls);
      chunk.epoch = epoch;
    });
  }

  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    const ofGroup = (group: Group<In>): void => {
      for (const line of group.lines) {
        for (let chunk = line.head; chunk !== undefined;) {
          const { next } = chunk; // the visitor may empty the chunk, which unlinks it
          visit(chunk);
          chunk = next;
        }
      }
    };
    if (this.#only !== undefined) ofGroup(this.#only);
    else for (const group of [...this.#fresh.values(), ...this.#served.values()]) ofGroup(group);
  }

  /** The usual case, one line and nothing to skip for: its front, without choosing item by item. */
  #takeRow(group: Group<In>, limit: number): Chunk<In> | undefined {
    if (this.#order !== undefined || this.#limits.maxBatchWeight !== Infinity) return undefined;
    const [immediate, interactive, bulk] = group.lines;
    const line = interactive.live > 0 ? interactive : immediate.live > 0 ? immediate : bulk;
    if (line.live !== group.waiting) return undefined;
    let head = line.head!;
    let batch: Chunk<In>;
    if (head.live === head.count && head.count <= limit) {
      line.unlink(head);
      line.live -= head.count;
      this.size -= head.count;
      if (line.lane === 0) this.immediate -= head.count;
      batch = head;
    } else {
      batch = new Chunk<In>(head.epoch, undefined);
    }
    while (batch.count < limit && line.live > 0) {
      head = line.head!;
      while (head.settlers[head.head] === undefined) head.head++;
      this.#move(head, head.head, batch);
    }
    if (batch.slots !== undefined) this.#leaveKeys(batch);
    return batch;
  }

  #takeChosen(group: Group<In>, limit: number, nowMs: number): Chunk<In> | undefined {
    const count = this.#choose(group, limit, nowMs);
    if (count === 0) return undefined;
    const batch = new Chunk<In>(this.#chosenChunks[0]!.epoch, undefined);
    for (let i = 0; i < count; i++) this.#move(this.#chosenChunks[i]!, this.#chosenIndices[i]!, batch);
    this.#chosenChunks.length = 0;
    if (batch.slots !== undefined) this.#leaveKeys(batch);
    return batch;
  }

  /** Chooses at most `limit` entries in the order in which they should go; returns how many. */
  #choose(group: Group<In>, limit: number, nowMs: number): number {
    const [immediate, interactive, bulk] = group.lines.map((line) => new Cursor(line)) as Cursors<In>;
    const { maxBatchWeight, padded } = this.#limits;
    const touched: OrderKey<In>[] = [];
    const withImmediate = !immediate.atEnd();
    let count = 0;
    let weight = 0;
    let heaviest = 0;
    this.#closedByWeight = false;
    while (count < limit) {
      let cursor = immediate;
      if (immediate.atEnd()) {
        // Bulk fills what interactive leaves; once aged it takes its turn by age. An immediate batch takes no young bulk.
        const bulkIsAged = !bulk.atEnd() && nowMs - bulk.arrivedAtMs() >= bulkPromotionMs;
        if (bulkIsAged && (interactive.atEnd() || bulk.arrivedAtMs() < interactive.arrivedAtMs())) cursor = bulk;
        else if (!interactive.atEnd()) cursor = interactive;
        else if (!bulk.atEnd() && !withImmediate) cursor = bulk;
        else break;
      }
      const { chunk, index } = cursor.take();
      const order = chunk.slots?.[index]?.order;
      if (order !== undefined) {
        touched.push(order);
        if (!order.admits(chunk.slots![index]!)) continue;
      }
      if (chunk.weights !== undefined) {
        const itemWeight = chunk.weights[index]!;
        const heavier = padded ? Math.max(heaviest, itemWeight) * (count + 1) : weight + itemWeight;
        // The first item that does not fit closes the batch: a smaller one behind it must not overtake.
        if (heavier > maxBatchWeight && count > 0) {
          this.#closedByWeight = true;
          break;
        }
        heaviest = Math.max(heaviest, itemWeight);
        weight = heavier;
      }
      this.#chosenChunks[count] = chunk;
      this.#chosenIndices[count] = index;
      count++;
    }
    for (const order of touched) order.following = order.next = undefined;
    this.#chosenWeight = weight;
    return count;
  }

  /** Moves a live entry with everything that belongs to it to the end of another chunk. */
  #move(from: Chunk<In>, index: number, to: Chunk<In>): void {
    const at = to.count;
    const epoch = from.epochOf(index);
    if (to.epochs !== undefined) to.epochs[at] = epoch;
    else if (to.epoch !== epoch) {
      if (at === 0) to.epoch = epoch;
      else (to.epochs = new Array<Epoch>(at).fill(to.epoch))[at] = epoch;
    }
    to.push(from.items[index]!, from.settlers[index]!, from.arrivedAtMs(index));
    if (from.weights !== undefined) (to.weights ??= [])[at] = from.weights[index]!;
    if (from.slots !== undefined) {
      const slot = from.slots[index]!;
      (to.slots ??= [])[at] = slot;
      slot.chunk = to;
      slot.index = at;
    }
    this.#watch.move(from, index, to, at);
    from.items[index] = undefined as In;
    from.settlers[index] = undefined;
    from.live--;
    if (from.live === 0) this.#watch.forget(from);
    this.removed(from);
  }

  /** The batch's items wait no more: their order keys are held by it, and equal items start a slot of their own. */
  #leaveKeys(batch: Chunk<In>): void {
    for (const slot of batch.slots!) {
      if (slot.order !== undefined) this.#order!.taken(slot, batch);
      slot.leaveDedupe?.(slot);
    }
  }

  /** The least recently served group first. */
  *#inTurn(): Generator<Group<In>, void> {
    const freshGroups = this.#fresh.values();
    const servedGroups = this.#served.values();
    let fresh = freshGroups.next();
    let served = servedGroups.next();
    while (fresh.done !== true || served.done !== true) {
      if (served.done === true || (fresh.done !== true && fresh.value.turn < served.value.turn)) {
        yield fresh.value!;
        fresh = freshGroups.next();
      } else {
        yield served.value;
        served = servedGroups.next();
      }
    }
  }

  #markServed(group: Group<In>): void {
    group.turn = ++this.#turn;
    this.#fresh.delete(group.key);
    this.#served.delete(group.key);
    if (group.waiting > 0) this.#served.set(group.key, group);
  }
}

type Cursors<In> = [Cursor<In>, Cursor<In>, Cursor<In>];

/** Walks the live entries of a line without taking them. */
class Cursor<In> {
  #chunk: Chunk<In> | undefined;
  #index: number;

  constructor(line: Line<In>) {
    this.#chunk = line.head;
    this.#index = (this.#chunk?.head ?? 0) - 1;
    this.#advance();
  }

  atEnd(): boolean {
    return this.#chunk === undefined;
  }

  arrivedAtMs(): number {
    return this.#chunk!.arrivedAtMs(this.#index);
  }

  take(): { readonly chunk: Chunk<In>; readonly index: number } {
    const taken = { chunk: this.#chunk!, index: this.#index };
    this.#advance();
    return taken;
  }

  #advance(): void {
    this.#index++;
    while (this.#chunk !== undefined) {
      while (this.#index < this.#chunk.count && this.#chunk.settlers[this.#index] === undefined) this.#index++;
      if (this.#index < this.#chunk.count) return;
      this.#chunk = this.#chunk.next;
      this.#index = 0;
    }
  }
}

function firstLane<In>(group: Group<In>, nowMs: number): Lane {
  const [immediate, interactive, bulk] = group.lines;
  if (immediate.live > 0) return 0;
  return interactive.live > 0 || nowMs - bulk.oldestAtMs() >= bulkPromotionMs ? 1 : 2;
}

function oldestOf<In>(group: Group<In>): number {
  const [immediate, interactive, bulk] = group.lines;
  return Math.min(immediate.oldestAtMs(), interactive.oldestAtMs(), bulk.oldestAtMs());
}
