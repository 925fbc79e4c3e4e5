import { Chunk, type Settler } from "./chunk.ts";
import type { Epoch, Epochs } from "./epoch.ts";
import { Group } from "./group.ts";
import { Groups } from "./groups.ts";
import { invariant } from "./invariant.ts";
import type { Lane, Line } from "./line.ts";
import type { OrderKeys } from "./order.ts";
import { Selection, type BatchLimits } from "./selection.ts";
import type { Watch } from "./watch.ts";

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
  /** An immediate item is among them; one that its order key blocks is not. */
  withImmediate: boolean;
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
  readonly #groups: Groups<In> = new Groups();
  readonly #preview: Preview = {
    waiting: 0,
    oldestAtMs: 0,
    capacity: 0,
    weight: 0,
    closedByWeight: false,
    withImmediate: false,
  };
  readonly #selection: Selection<In>;

  constructor(
    limits: BatchLimits,
    epochs: Epochs,
    watch: Watch<In>,
    order: OrderKeys<In> | undefined,
    grouped: boolean,
  ) {
    this.#limits = limits;
    this.#selection = new Selection(limits);
    // A chunk that fills up just as a batch does becomes one without a copy.
    this.#chunkSize = Math.min(limits.maxBatchSize, 256);
    this.#epochs = epochs;
    this.#watch = watch;
    this.#order = order;
    this.#only = grouped ? undefined : new Group<In>(undefined);
  }

  groupOf(key: unknown): Group<In> {
    return this.#only ?? this.#groups.of(key);
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
    if (this.#only === undefined && line.group.waiting === 0) this.#groups.forget(line.group);
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
    target.keepAge(chunk.arrivedAtMs(index));
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
      for (const group of this.#groups.inTurn()) if (group.firstLane(nowMs) === lane && visit(group)) return true;
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
      preview.oldestAtMs = group.oldestAtMs();
      preview.weight = preview.waiting;
      preview.withImmediate = group.line(0).live > 0;
      return preview;
    }
    const selection = this.#selection;
    const count = selection.choose(group, this.#limits.maxBatchSize, nowMs);
    preview.waiting = count;
    preview.closedByWeight = selection.closedByWeight;
    preview.weight = selection.weight;
    preview.withImmediate = selection.withImmediate;
    if (selection.closedByWeight) preview.capacity = count;
    // What is beyond the next batch only tells a policy how long the queue is; with order keys it may be blocked.
    if (count === preview.capacity && this.#order === undefined) preview.waiting = group.waiting;
    preview.oldestAtMs = this.#order === undefined ? group.oldestAtMs() : selection.oldestAtMs;
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
    if (this.#only === undefined) this.#groups.served(group);
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
    else for (const group of this.#groups.all()) ofGroup(group);
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
    const { chunks, indices } = this.#selection;
    const count = this.#selection.choose(group, limit, nowMs);
    if (count === 0) return undefined;
    const batch = new Chunk<In>(chunks[0]!.epoch, undefined);
    for (let i = 0; i < count; i++) this.#move(chunks[i]!, indices[i]!, batch);
    chunks.length = 0;
    if (batch.slots !== undefined) this.#leaveKeys(batch);
    return batch;
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
    if (from.tags?.[index] !== undefined) (to.tags ??= [])[at] = from.tags[index];
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
}
