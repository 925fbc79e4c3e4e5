import type { LaneQueue } from "../queue/group.ts";
import { placeOf } from "../queue/order-keys.ts";
import type { Chunk, ItemRef } from "../queue/chunk.ts";
import type { Account } from "../queue/tenants.ts";

/** Where a waiting entry is. */
export interface Entry<In> {
  readonly chunk: Chunk<In>;
  readonly index: number;
}

/** Walks the live entries of a lane queue without taking them, formerly blocked ones in their places. */
export class Cursor<In> {
  readonly laneQueue: LaneQueue<In>;
  protected chunk: Chunk<In> | undefined;
  protected index = -1;
  /** By place; entries before `backAt` have been taken. */
  protected back: ItemRef<In>[] | undefined;
  protected backAt = 0;

  constructor(laneQueue: LaneQueue<In>) {
    this.laneQueue = laneQueue;
  }

  /** Before the first look. At most `limit` entries will go. */
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

  take(): Entry<In> {
    const back = this.#nextBack();
    if (back !== undefined) {
      this.backAt++;
      return back;
    }
    const taken = { chunk: this.chunk!, index: this.index };
    this.advance();
    return taken;
  }

  /** The tenant in whose turn the last entry was taken; undefined where there are none. */
  payer(): Account<In> | undefined {
    return undefined;
  }

  /** The last entry that was taken goes in the batch. */
  went(_weight: number): void {}

  /** After the last look. */
  end(): void {}

  /** A blocked entry may follow the one before it. */
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

/** Walks a lane queue from the newest entry to the oldest. */
export class NewestFirst<In> extends Cursor<In> {
  override begin(limit: number): void {
    const { tail, blocked } = this.laneQueue;
    this.chunk = tail;
    this.index = tail?.count ?? 0;
    this.advance();
    if (blocked !== undefined) this.back = blocked.ready.slice(-limit - 1).reverse();
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
      while (this.index >= 0 && this.chunk.settlers[this.index] === undefined) this.index--;
      if (this.index >= 0) return;
      this.chunk = this.chunk.previous;
      this.index = (this.chunk?.count ?? 0) - 1;
    }
  }
}
