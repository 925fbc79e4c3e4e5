import type { Chunk } from "./chunk.ts";
import { bulkPromotionMs, type Group } from "./group.ts";
import type { Line } from "./line.ts";
import type { OrderKey } from "./order.ts";

/** What may go in one batch. */
export interface BatchLimits {
  readonly maxBatchSize: number;
  readonly maxBatchWeight: number;
  readonly padded: boolean;
}

/**
 * Chooses the entries of the next batch item by item, by lane, age, order and weight, without taking them. Reused: the
 * last choice stands in `chunks` and `indices`.
 */
export class Selection<In> {
  readonly chunks: Chunk<In>[] = [];
  readonly indices: number[] = [];
  weight = 0;
  /** The next item would have been too much for maxBatchWeight. */
  closedByWeight = false;
  withImmediate = false;
  /** Arrival of the oldest item that no order key blocks, chosen or left for the batch after. */
  oldestAtMs: number = Infinity;
  readonly #limits: BatchLimits;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** Chooses at most `limit` entries in the order in which they should go; returns how many. */
  choose(group: Group<In>, limit: number, nowMs: number): number {
    const [immediate, interactive, bulk] = group.lines.map((line) => new Cursor(line)) as Cursors<In>;
    const { maxBatchWeight, padded } = this.#limits;
    const touched: OrderKey<In>[] = [];
    let count = 0;
    let weight = 0;
    let heaviest = 0;
    let oldestAtMs = Infinity;
    this.closedByWeight = false;
    this.withImmediate = false;
    while (count < limit) {
      let cursor = immediate;
      if (immediate.atEnd()) {
        // Bulk fills what interactive leaves; once aged it takes its turn by age. An immediate batch takes no young bulk.
        const bulkIsAged = !bulk.atEnd() && nowMs - bulk.arrivedAtMs() >= bulkPromotionMs;
        if (bulkIsAged && (interactive.atEnd() || bulk.arrivedAtMs() < interactive.arrivedAtMs())) cursor = bulk;
        else if (!interactive.atEnd()) cursor = interactive;
        else if (!bulk.atEnd() && !this.withImmediate) cursor = bulk;
        else break;
      }
      const { chunk, index } = cursor.take();
      const order = chunk.slots?.[index]?.order;
      if (order !== undefined) {
        touched.push(order);
        if (!order.admits(chunk.slots![index]!)) continue;
      }
      oldestAtMs = Math.min(oldestAtMs, chunk.arrivedAtMs(index));
      if (chunk.weights !== undefined) {
        const itemWeight = chunk.weights[index]!;
        const heavier = padded ? Math.max(heaviest, itemWeight) * (count + 1) : weight + itemWeight;
        // The first item that does not fit closes the batch: a smaller one behind it must not overtake.
        if (heavier > maxBatchWeight && count > 0) {
          this.closedByWeight = true;
          break;
        }
        heaviest = Math.max(heaviest, itemWeight);
        weight = heavier;
      }
      // Only one that goes counts: behind a blocked one, bulk may be what it waits for, in this group or in another.
      if (chunk.line!.lane === 0) this.withImmediate = true;
      this.chunks[count] = chunk;
      this.indices[count] = index;
      count++;
    }
    // A lower lane that the batch left alone may hold the oldest item, and so may promoted ones, last in their line.
    for (const cursor of [immediate, interactive, bulk]) {
      oldestAtMs = Math.min(oldestAtMs, this.#firstAdmitted(cursor, touched));
      if (!cursor.atEnd()) oldestAtMs = Math.min(oldestAtMs, cursor.line.outOfPlaceAtMs);
    }
    for (const order of touched) order.following = order.next = undefined;
    this.oldestAtMs = oldestAtMs;
    this.weight = weight;
    return count;
  }

  /** Arrival of the first item from here on that its order key does not block; `Infinity` without one. */
  #firstAdmitted(cursor: Cursor<In>, touched: OrderKey<In>[]): number {
    while (!cursor.atEnd()) {
      const { chunk, index } = cursor.take();
      const slot = chunk.slots?.[index];
      if (slot?.order === undefined) return chunk.arrivedAtMs(index);
      touched.push(slot.order);
      if (slot.order.admits(slot)) return chunk.arrivedAtMs(index);
    }
    return Infinity;
  }
}

type Cursors<In> = [Cursor<In>, Cursor<In>, Cursor<In>];

/** Walks the live entries of a line without taking them. */
class Cursor<In> {
  readonly line: Line<In>;
  #chunk: Chunk<In> | undefined;
  #index: number;

  constructor(line: Line<In>) {
    this.line = line;
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
