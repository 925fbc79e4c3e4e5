import { placeOf } from "../queue/blocked-calls.ts";
import type { Chunk, ItemRef } from "../queue/chunk.ts";
import { bulkPromotionMs, type Group } from "../queue/group.ts";
import type { LaneQueue } from "../queue/lane-queue.ts";
import { compose, type BatchLimits, type Candidate, type Costs } from "./composition.ts";

/** Items looked at to compose a batch by cost. Of the newest only a few: cost must not bring back old ones. */
const candidatesFor = (limit: number, newestFirst: boolean): number =>
  newestFirst ? Math.min(2 * limit, 512) : Math.min(Math.max(limit, 512), 4096);
/** At most this many entries are skipped to fill a batch: 10,000 that run alone must not be scanned again each time. */
const maxPassed = 1024;

/**
 * Chooses the entries of the next batch item by item, by lane, age, order and weight, without taking them. Entries that
 * it finds blocked by their order key move to the blocked calls, so that each is met once, not by every choice. Reused:
 * the last choice is in `chunks` and `indices`.
 */
export class Selection<In> {
  readonly chunks: Chunk<In>[] = [];
  readonly indices: number[] = [];
  weight = 0;
  /** The next item would have exceeded maxBatchWeight. */
  closedByWeight = false;
  /** It is one item that shares its batch with no other. */
  isAlone = false;
  withImmediate = false;
  /** Arrival of the oldest item that no order key blocks, chosen or left for the batch after. */
  oldestAtMs: number = Infinity;
  readonly #limits: BatchLimits;
  readonly #setAside: (chunk: Chunk<In>, index: number) => void;
  #choice = 0;

  constructor(limits: BatchLimits, setAside: (chunk: Chunk<In>, index: number) => void) {
    this.#limits = limits;
    this.#setAside = setAside;
  }

  /**
   * Chooses at most `limit` entries in the order in which they should go; returns how many. An entry that runs alone
   * goes when it is first; others behind it may pass it. `onlyAlone`: the first of those. `costs`: within a lane, the
   * choice is that of `compose`.
   */
  choose(group: Group<In>, limit: number, nowMs: number, costs?: Costs, onlyAlone: boolean = false): number {
    const { newestFirst } = group;
    const seen = costs === undefined ? limit : candidatesFor(limit, newestFirst);
    const cursors = group.laneQueues.map((laneQueue) => {
      const cursor = newestFirst && laneQueue.lane < 2 ? new NewestFirst(laneQueue) : new Cursor(laneQueue);
      cursor.begin(seen);
      return cursor;
    }) as Cursors<In>;
    const [immediate, interactive, bulk] = cursors;
    const { maxBatchWeight, padded } = this.#limits;
    let count = 0;
    let weight = 0;
    let heaviest = 0;
    let oldestAtMs = Infinity;
    let passed = 0;
    this.#choice++;
    this.closedByWeight = false;
    this.isAlone = false;
    this.withImmediate = false;
    while (count < seen) {
      let cursor = immediate;
      if (immediate.atEnd()) {
        // Bulk fills the places that interactive leaves; once aged it takes its turn by age. An immediate batch takes no young bulk.
        const bulkIsAged = !bulk.atEnd() && nowMs - bulk.arrivedAtMs() >= bulkPromotionMs;
        if (bulkIsAged && (interactive.atEnd() || bulk.arrivedAtMs() < interactive.oldestAtMs())) cursor = bulk;
        else if (!interactive.atEnd()) cursor = interactive;
        else if (!bulk.atEnd() && !this.withImmediate) cursor = bulk;
        else break;
      }
      const { chunk, index } = cursor.take();
      const isAlone = chunk.alone?.[index] === true;
      if (isAlone ? count > 0 : onlyAlone) {
        if (++passed > maxPassed) break;
        continue;
      }
      if (!this.#admits(chunk, index, cursors)) continue;
      oldestAtMs = Math.min(oldestAtMs, chunk.arrivedAtMs(index));
      if (chunk.weights !== undefined && costs === undefined) {
        const itemWeight = chunk.weights[index]!;
        const heavier = padded ? Math.max(heaviest, itemWeight) * (count + 1) : weight + itemWeight;
        // The first item that does not fit closes the batch: a smaller one behind it must not overtake it.
        if (heavier > maxBatchWeight && count > 0) {
          this.closedByWeight = true;
          break;
        }
        heaviest = Math.max(heaviest, itemWeight);
        weight = heavier;
      }
      // Only one that goes counts: behind a blocked one, it may wait for bulk, in this group or in another.
      if (chunk.laneQueue!.lane === 0) this.withImmediate = true;
      this.chunks[count] = chunk;
      this.indices[count] = index;
      count++;
      if (isAlone) {
        this.isAlone = true;
        break;
      }
    }
    if (costs !== undefined && !this.isAlone) count = this.#compose(count, limit, costs, nowMs, newestFirst);
    // A lower lane that the batch left alone may hold the oldest item, and so may promoted ones, last in their queue.
    for (const cursor of newestFirst ? [] : cursors) {
      oldestAtMs = Math.min(oldestAtMs, this.#firstAdmitted(cursor, cursors));
      if (!cursor.atEnd()) oldestAtMs = Math.min(oldestAtMs, cursor.laneQueue.outOfPlaceAtMs);
    }
    this.oldestAtMs = oldestAtMs;
    if (costs === undefined) this.weight = weight;
    return count;
  }

  /** Of the first `count` entries, in the order in which they would go without weights, those that should go together. */
  #compose(count: number, limit: number, costs: Costs, nowMs: number, newestFirst: boolean): number {
    const { chunks, indices } = this;
    const candidates: Place<In>[] = [];
    for (let i = 0; i < count; i++) candidates.push(new Place(chunks[i]!, indices[i]!, nowMs, newestFirst));
    const limits = { ...this.#limits, maxBatchSize: limit };
    const chosen = compose(candidates, limits, costs, nowMs);
    this.closedByWeight = chosen.length < Math.min(count, limit);
    this.withImmediate = chosen.some(({ tier }) => tier === 0);
    let sum = 0;
    let heaviest = 0;
    chosen.forEach(({ chunk, index, weight }, i) => {
      chunks[i] = chunk;
      indices[i] = index;
      sum += weight;
      heaviest = Math.max(heaviest, weight);
    });
    this.weight = this.#limits.padded ? heaviest * chosen.length : sum;
    return chosen.length;
  }

  /** Arrival of the first item from here on that its order key does not block; `Infinity` without one. */
  #firstAdmitted(cursor: Cursor<In>, cursors: Cursors<In>): number {
    while (!cursor.atEnd()) {
      const { chunk, index } = cursor.take();
      if (this.#admits(chunk, index, cursors)) return chunk.arrivedAtMs(index);
    }
    return Infinity;
  }

  #admits(chunk: Chunk<In>, index: number, cursors: Cursors<In>): boolean {
    const ref = chunk.refs?.[index];
    if (ref?.order === undefined) return true;
    if (!ref.order.admits(ref, this.#choice)) {
      this.#setAside(chunk, index);
      return false;
    }
    // The one behind it may follow in the same batch. A scan of the lane queue finds it there, but not among blocked
    // calls.
    const { next: behind } = ref;
    const laneQueue = behind?.chunk.laneQueue;
    if (laneQueue?.group === chunk.laneQueue!.group && behind!.chunk.list === laneQueue.blocked)
      cursors[laneQueue.lane].insert(behind!);
    return true;
  }
}

/** A waiting entry, as a candidate for the next batch. */
class Place<In> implements Candidate {
  readonly chunk: Chunk<In>;
  readonly index: number;
  readonly tier: number;
  readonly weight: number;
  readonly arrivedAtMs: number;
  readonly deadlineMs: number;
  readonly dueAtMs: number;
  readonly order: unknown;

  /** `newestFirst`: age gives no precedence; entries that keep their place go first. */
  constructor(chunk: Chunk<In>, index: number, nowMs: number, newestFirst: boolean) {
    const lane = chunk.laneQueue!.lane;
    this.chunk = chunk;
    this.index = index;
    this.weight = chunk.weights![index]!;
    const arrivedAtMs = chunk.arrivedAtMs(index);
    this.arrivedAtMs = newestFirst ? nowMs : arrivedAtMs;
    this.tier = lane === 2 && nowMs - arrivedAtMs >= bulkPromotionMs ? 1 : lane;
    this.deadlineMs = chunk.deadlinesMs?.[index] ?? Infinity;
    const isFirst = chunk.keepsPlace?.[index] === true;
    this.dueAtMs = !newestFirst ? chunk.duesMs![index]! : isFirst ? -Infinity : Infinity;
    this.order = chunk.refs?.[index]?.order;
  }
}

type Cursors<In> = [Cursor<In>, Cursor<In>, Cursor<In>];

/** Walks the live entries of a lane queue without taking them, formerly blocked ones in their places. */
class Cursor<In> {
  readonly laneQueue: LaneQueue<In>;
  protected chunk: Chunk<In> | undefined;
  protected index = -1;
  /** By place; entries before `backAt` have been taken. */
  protected back: ItemRef<In>[] | undefined;
  protected backAt = 0;

  constructor(laneQueue: LaneQueue<In>) {
    this.laneQueue = laneQueue;
  }

  /** At most `limit` entries will go. */
  begin(limit: number): void {
    const { head, blocked } = this.laneQueue;
    this.chunk = head;
    this.index = (head?.head ?? 0) - 1;
    this.advance();
    // One more than can go: the oldest of those that stay.
    if (blocked !== undefined) this.back = blocked.ready.slice(0, limit + 1);
  }

  atEnd(): boolean {
    return this.chunk === undefined && this.back?.[this.backAt] === undefined;
  }

  /** Arrival of the next entry. */
  arrivedAtMs(): number {
    const back = this.#nextBack();
    return back === undefined ? this.chunk!.arrivedAtMs(this.index) : back.chunk.arrivedAtMs(back.index);
  }

  /** Arrival of the oldest entry that is left. */
  oldestAtMs(): number {
    return this.arrivedAtMs();
  }

  take(): { readonly chunk: Chunk<In>; readonly index: number } {
    const back = this.#nextBack();
    if (back !== undefined) {
      this.backAt++;
      return back;
    }
    const taken = { chunk: this.chunk!, index: this.index };
    this.advance();
    return taken;
  }

  insert(ref: ItemRef<In>): void {
    this.back ??= [];
    this.back.splice(Math.max(this.backAt, this.placeOf(this.back, ref)), 0, ref);
  }

  protected isBefore(place: number, other: number): boolean {
    return place < other;
  }

  protected placeOf(sorted: readonly ItemRef<In>[], ref: ItemRef<In>): number {
    return placeOf(sorted, ref);
  }

  /** To the next live entry. */
  protected advance(): void {
    this.index++;
    while (this.chunk !== undefined) {
      while (this.index < this.chunk.count && this.chunk.settlers[this.index] === undefined) this.index++;
      if (this.index < this.chunk.count) return;
      this.chunk = this.chunk.next;
      this.index = 0;
    }
  }

  /** The next entry, where it is a formerly blocked one. */
  #nextBack(): ItemRef<In> | undefined {
    const back = this.back?.[this.backAt];
    if (back === undefined || this.chunk === undefined) return back;
    return this.isBefore(back.place, this.chunk.refs![this.index]!.place) ? back : undefined;
  }
}

/** The same walk from the newest entry to the oldest, after the entries that keep their place. */
class NewestFirst<In> extends Cursor<In> {
  /** From the oldest on. */
  #keeping: { readonly chunk: Chunk<In>; readonly index: number }[] | undefined;

  override atEnd(): boolean {
    return this.#keeping === undefined && super.atEnd();
  }

  override arrivedAtMs(): number {
    const keeping = this.#keeping?.[0];
    return keeping === undefined ? super.arrivedAtMs() : keeping.chunk.arrivedAtMs(keeping.index);
  }

  override oldestAtMs(): number {
    return this.laneQueue.oldestAtMs();
  }

  override take(): { readonly chunk: Chunk<In>; readonly index: number } {
    const next = this.#keeping?.shift() ?? super.take();
    if (this.#keeping?.length === 0) this.#keeping = undefined;
    return next;
  }

  override begin(limit: number): void {
    const { head, tail, blocked, keeping } = this.laneQueue;
    this.chunk = tail;
    this.index = tail?.count ?? 0;
    this.advance();
    if (blocked !== undefined) this.back = blocked.ready.slice(-limit - 1).reverse();
    if (keeping > 0) this.#findKeeping(head, limit);
  }

  protected override isBefore(place: number, other: number): boolean {
    return place > other;
  }

  protected override placeOf(sorted: readonly ItemRef<In>[], { place }: ItemRef<In>): number {
    const at = sorted.findIndex((ref) => ref.place < place);
    return at === -1 ? sorted.length : at;
  }

  protected override advance(): void {
    this.index--;
    while (this.chunk !== undefined) {
      const { settlers, keepsPlace } = this.chunk;
      while (this.index >= 0 && (settlers[this.index] === undefined || keepsPlace?.[this.index] === true)) this.index--;
      if (this.index >= 0) return;
      this.chunk = this.chunk.previous;
      this.index = (this.chunk?.count ?? 0) - 1;
    }
  }

  #findKeeping(head: Chunk<In> | undefined, limit: number): void {
    const found: { readonly chunk: Chunk<In>; readonly index: number }[] = [];
    for (let chunk = head; chunk !== undefined && found.length <= limit; chunk = chunk.next) {
      if (chunk.keepsPlace === undefined) continue;
      for (let index = chunk.head; index < chunk.count; index++)
        if (chunk.keepsPlace[index] === true && chunk.settlers[index] !== undefined) found.push({ chunk, index });
    }
    if (found.length > 0) this.#keeping = found;
  }
}
