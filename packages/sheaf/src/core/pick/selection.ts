import type { CostModel } from "../../policies/cost-model.ts";
import { Batch, type Entry, weightsOf } from "../queue/entry.ts";
import type { Group, LaneQueue } from "../queue/group.ts";
import type { Queue } from "../queue/queue.ts";
import type { Account, Tenants } from "../queue/tenants.ts";
import { ByTurns } from "./by-turns.ts";
import { Cursor } from "./cursors.ts";
import type { Background } from "./background.ts";
import { compose, type BatchLimits, type Candidate, type Costs } from "./composition.ts";

/** The next batch of a group, as it would be now. */
export interface Preview {
  /** Items that could go; too many where counting exactly would cost a scan. */
  waiting: number;
  oldestAtMs: number;
  /** Most items the batch can hold: fewer than maxBatchSize where its weight closes it. */
  capacity: number;
  /** Weight of the items that could go; the number of items without weights. */
  weight: number;
  closedByWeight: boolean;
  /** It is one item that shares its batch with no other. */
  isAlone: boolean;
  /** An immediate item is among them; one that its order key blocks is not. */
  withImmediate: boolean;
  /** The first of them, where items are chosen one by one. */
  first?: unknown;
}

/** Items looked at to compose a batch by cost. Of the newest only a few: cost must not bring back old ones. */
const candidatesFor = (limit: number, newestFirst: boolean): number =>
  newestFirst ? Math.min(2 * limit, 512) : Math.min(Math.max(limit, 512), 4096);
/** At most this many entries are skipped to fill a batch: 10,000 that run alone must not be scanned again each time. */
const maxPassed = 1024;

/**
 * Chooses the entries of the next batch item by item, by lane, age, order and weight, without taking them. Entries that
 * it finds blocked by their order key move to the blocked calls, so that each is met once, not by every choice. Reused:
 * the last choice is in `entries`.
 */
export class Selection<In> {
  readonly entries: Entry<In>[] = [];
  /** With tenants: in whose turn each goes. */
  readonly payers: Account<In>[] = [];
  weight = 0;
  /** The next item would have exceeded maxBatchWeight. */
  closedByWeight = false;
  /** It is one item that shares its batch with no other. */
  isAlone = false;
  withImmediate = false;
  /** More bulk items would have made the run too long. */
  closedByBulk = false;
  /** Arrival of the oldest item that no order key blocks, chosen or left for the batch after. */
  oldestAtMs: number = Infinity;
  readonly #limits: BatchLimits;
  readonly #tenants: Tenants<In> | undefined;
  readonly #queue: Queue<In>;
  readonly #background: Background<In>;
  /** Order keys may block entries. */
  readonly #hasOrder: boolean;
  #choice = 0;
  /** What was chosen last. */
  #last:
    { readonly group: Group<In>; readonly seen: number; readonly count: number; readonly version: number } | undefined;

  constructor(limits: BatchLimits, queue: Queue<In>, background: Background<In>) {
    this.#background = background;
    this.#limits = limits;
    this.#queue = queue;
    this.#hasOrder = queue.order !== undefined;
    this.#tenants = queue.tenants;
  }

  /** The next batch of this group, as it could be; `waiting` is 0 where all are blocked. */
  preview(group: Group<In>, nowMs: number, costs: Costs | undefined): Preview {
    const { maxBatchSize } = this.#limits;
    const count = this.#choose(group, maxBatchSize, nowMs, costs);
    const { closedByWeight, closedByBulk, weight, withImmediate, isAlone } = this;
    const capacity = closedByWeight || closedByBulk || isAlone ? count : maxBatchSize;
    const toGo = group.mayGo(this.#limits);
    return {
      // Items beyond the next batch only show a policy how long the queue is; with order keys it may be blocked.
      waiting: count === capacity && !this.#hasOrder ? toGo.waiting : count,
      oldestAtMs: !this.#hasOrder || group.newestFirst ? toGo.oldestAtMs : this.oldestAtMs,
      capacity,
      weight,
      closedByWeight,
      isAlone,
      withImmediate,
      first: this.entries[0]?.item,
    };
  }

  /** The expected run time of the first `size` items of the last preview. */
  nextMs(cost: CostModel, size: number): number {
    // Beyond the batch that was chosen, or without weights: by size.
    if (!this.#queue.hasWeights || size > this.entries.length) return cost.at(size);
    const { sum, heaviest } = weightsOf(this.entries.slice(0, size));
    return cost.of(size, sum, heaviest);
  }

  /** Takes at most `limit` entries as a batch: those of the preview, unless others would be chosen now. */
  take(
    group: Group<In>,
    limit: number,
    nowMs: number,
    costs: Costs | undefined,
    onlyAlone: boolean,
  ): Batch<In> | undefined {
    const { entries, payers } = this;
    const count = this.#chosen(group, limit, costs, onlyAlone) ?? this.#choose(group, limit, nowMs, costs, onlyAlone);
    if (count === 0) return undefined;
    const batch = new Batch<In>(count);
    for (let i = 0; i < count; i++) {
      const entry = entries[i]!;
      this.#tenants?.charge(payers[i]!, entry.weight);
      this.#queue.take(entry, entry.laneQueue!, batch);
    }
    entries.length = 0;
    this.#last = undefined;
    return batch;
  }

  /**
   * How many entries of the last choice are those that would be chosen now; undefined where it must be chosen again: among other
   * candidates, or because a policy has called the batcher since.
   */
  #chosen(group: Group<In>, limit: number, costs: Costs | undefined, onlyAlone: boolean): number | undefined {
    const last = this.#last;
    if (onlyAlone || last?.group !== group || last.version !== this.#queue.version) return undefined;
    if (costs !== undefined && candidatesFor(limit, group.newestFirst) !== last.seen) return undefined;
    return Math.min(limit, last.count);
  }

  /**
   * Chooses at most `limit` entries in the order in which they should go; returns how many. An entry that runs alone
   * goes when it is first; others behind it may pass it. `onlyAlone`: the first of those. `costs`: within a lane, the
   * choice is that of `compose`.
   */
  #choose(group: Group<In>, limit: number, nowMs: number, costs?: Costs, onlyAlone: boolean = false): number {
    const { newestFirst } = group;
    const tenants = this.#tenants;
    const seen = costs === undefined ? limit : candidatesFor(limit, newestFirst);
    // By turns the oldest may be left for long: it is looked for before anything is chosen.
    let oldestAtMs = tenants === undefined || newestFirst ? Infinity : this.#oldestAtMs(group);
    const cursors = cursorsOf(group, seen, (laneQueue) => {
      const fromNewest = newestFirst && laneQueue.lane < 2;
      if (tenants !== undefined) return new ByTurns(laneQueue, tenants, fromNewest);
      return new Cursor(laneQueue, fromNewest);
    });
    const [immediate, interactive, bulk] = cursors;
    const { maxBatchWeight, padded, onlyBulk, fill } = this.#limits;
    let filled = 0;
    let filledWeight = 0;
    let count = 0;
    let weight = 0;
    let heaviest = 0;
    let passed = 0;
    this.#choice++;
    this.closedByWeight = false;
    this.isAlone = false;
    this.withImmediate = false;
    this.closedByBulk = false;
    const hasBulk = group.laneQueue(2).live > 0;
    let turn = hasBulk && !onlyBulk && this.#limits.fill === undefined ? this.#background.turn(group) : 0;
    const bulkLimit =
      hasBulk && costs === undefined
        ? onlyBulk
          ? this.#background.size(nowMs)
          : this.#background.limit(group, nowMs)
        : Infinity;
    while (count < seen) {
      let cursor = immediate;
      if (turn > 0 && !bulk.atEnd()) {
        turn--;
        cursor = bulk;
      } else if (onlyBulk || immediate.atEnd()) {
        // Bulk fills the places that interactive leaves. An immediate batch takes none.
        if (!onlyBulk && !interactive.atEnd()) cursor = interactive;
        else if (bulk.atEnd() || this.withImmediate) break;
        else if (count >= bulkLimit) {
          this.closedByBulk = true;
          break;
        } else cursor = bulk;
      }
      const entry = cursor.take();
      const { weight: itemWeight } = entry;
      const isAlone = entry.terms.alone;
      if (isAlone ? count > 0 : onlyAlone) {
        if (++passed > maxPassed) break;
        continue;
      }
      if (!this.#admits(entry, cursors)) continue;
      if (cursor === bulk && !onlyBulk && fill !== undefined) {
        filledWeight += itemWeight;
        if (++filled > fill.items || filledWeight > fill.weight) break;
      }
      oldestAtMs = Math.min(oldestAtMs, entry.terms.arrivedAtMs);
      if (this.#queue.hasWeights && costs === undefined) {
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
      if (entry.lane === 0) this.withImmediate = true;
      this.entries[count] = entry;
      if (tenants !== undefined) {
        this.payers[count] = cursor.payer()!;
        cursor.went(itemWeight);
      }
      count++;
      if (isAlone) {
        this.isAlone = true;
        break;
      }
    }
    if (tenants !== undefined) {
      tenants.undo();
      for (const cursor of cursors) cursor.end();
    }
    if (costs !== undefined && !this.isAlone) count = this.#compose(count, limit, costs, nowMs, newestFirst, group);
    // A lower lane that the batch left alone may hold the oldest item, and so may promoted ones, last in their queue.
    for (const cursor of newestFirst || tenants !== undefined ? [] : cursors) {
      oldestAtMs = Math.min(oldestAtMs, this.#firstAdmitted(cursor, cursors));
      if (!cursor.atEnd()) oldestAtMs = Math.min(oldestAtMs, cursor.laneQueue.outOfPlaceAtMs);
    }
    this.oldestAtMs = oldestAtMs;
    if (costs === undefined) this.weight = weight;
    this.entries.length = count;
    this.#last = { group, seen, count, version: this.#queue.version };
    return count;
  }

  /** Of the first `count` entries, in the order in which they would go without weights, those that should go together. */
  #compose(count: number, limit: number, costs: Costs, nowMs: number, newestFirst: boolean, group: Group<In>): number {
    const { entries } = this;
    const candidates: Place<In>[] = [];
    // Bulk items whose turn it is stand first, and go first.
    let isTurn = entries[0]?.lane === 2 && group.waiting > group.laneQueue(2).live;
    for (let i = 0; i < count; i++) {
      const place = new Place(entries[i]!, this.payers[i], nowMs, newestFirst);
      isTurn &&= place.tier === 2;
      if (isTurn) place.tier = -1;
      candidates.push(place);
    }
    const limits = { ...this.#limits, maxBatchSize: limit };
    const bulkMs = group.laneQueue(2).live > 0 ? costs.cost.at(this.#background.limit(group, nowMs)) : Infinity;
    const chosen = compose(candidates, limits, { ...costs, bulkMs }, nowMs);
    this.closedByWeight = chosen.length < Math.min(count, limit);
    this.withImmediate = chosen.some(({ tier }) => tier === 0);
    let sum = 0;
    let heaviest = 0;
    chosen.forEach(({ entry, payer, weight }, i) => {
      entries[i] = entry;
      if (payer !== undefined) this.payers[i] = payer;
      sum += weight;
      heaviest = Math.max(heaviest, weight);
    });
    this.weight = this.#limits.padded ? heaviest * chosen.length : sum;
    return chosen.length;
  }

  /** Arrival of the oldest item that no order key blocks. */
  #oldestAtMs(group: Group<In>): number {
    this.#choice++;
    const cursors = cursorsOf(group, 0, (laneQueue) => new Cursor(laneQueue, false));
    const oldest = cursors.map((cursor) => {
      const firstAtMs = this.#firstAdmitted(cursor, cursors);
      return firstAtMs < Infinity ? Math.min(firstAtMs, cursor.laneQueue.outOfPlaceAtMs) : Infinity;
    });
    return Math.min(...oldest);
  }

  /** Arrival of the first item from here on that its order key does not block; `Infinity` without one. */
  #firstAdmitted(cursor: Cursor<In>, cursors: Cursors<In>): number {
    while (!cursor.atEnd()) {
      const entry = cursor.take();
      if (this.#admits(entry, cursors)) return entry.terms.arrivedAtMs;
    }
    return Infinity;
  }

  #admits(entry: Entry<In>, cursors: Cursors<In>): boolean {
    const { order, next } = entry.ties ?? {};
    if (order === undefined) return true;
    if (!order.admits(entry, this.#choice)) {
      this.#queue.setAside(entry);
      return false;
    }
    // The one behind it may follow in the same batch. A scan of the lane queue finds it there, but not among blocked
    // calls.
    const later = next?.entry;
    const laneQueue = later?.laneQueue;
    if (laneQueue?.group === entry.laneQueue!.group && later!.place === laneQueue.blocked)
      cursors[laneQueue.lane].insert(later!);
    return true;
  }
}

/** A waiting entry, as a candidate for the next batch. */
class Place<In> implements Candidate {
  readonly entry: Entry<In>;
  tier: number;
  readonly weight: number;
  readonly arrivedAtMs: number;
  readonly deadlineAtMs: number;
  readonly dueAtMs: number;
  readonly order: unknown;
  readonly payer: Account<In> | undefined;

  /** `newestFirst`: age gives no precedence. */
  constructor(entry: Entry<In>, payer: Account<In> | undefined, nowMs: number, newestFirst: boolean) {
    const { lane, weight, terms, keys, ties } = entry;
    this.payer = payer;
    this.entry = entry;
    this.weight = weight;
    this.arrivedAtMs = newestFirst ? nowMs : terms.arrivedAtMs;
    this.tier = lane;
    this.deadlineAtMs = terms.deadlineAtMs;
    this.dueAtMs = newestFirst ? Infinity : (keys?.dueAtMs ?? Infinity);
    this.order = ties?.order;
  }
}

type Cursors<In> = [Cursor<In>, Cursor<In>, Cursor<In>];

function cursorsOf<In>(
  group: Group<In>,
  limit: number,
  cursorOf: (laneQueue: LaneQueue<In>) => Cursor<In>,
): Cursors<In> {
  const cursors = group.laneQueues.map(cursorOf) as Cursors<In>;
  for (const cursor of cursors) cursor.begin(limit);
  return cursors;
}
