import type { Entry } from "../queue/entry.ts";
import type { LaneQueue } from "../queue/group.ts";
import { placeOf } from "../queue/order-keys.ts";
import type { Account } from "../queue/tenants.ts";

/** Walks the entries of a lane queue without taking them, formerly blocked ones in their places. */
export class Cursor<In> {
  readonly laneQueue: LaneQueue<In>;
  protected entry: Entry<In> | undefined;
  /** By rank; those before `readyAt` have been taken. */
  protected ready: Entry<In>[] | undefined;
  protected readyAt = 0;

  constructor(laneQueue: LaneQueue<In>) {
    this.laneQueue = laneQueue;
  }

  /** Before the first look. At most `limit` entries will go. */
  begin(limit: number): void {
    const { head, blocked } = this.laneQueue;
    this.entry = head;
    // One more than can go: the oldest of those that stay.
    if (blocked !== undefined) this.ready = blocked.ready.slice(0, limit + 1);
  }

  atEnd(): boolean {
    return this.entry === undefined && this.ready?.[this.readyAt] === undefined;
  }

  take(): Entry<In> {
    const ready = this.ready?.[this.readyAt];
    const entry = this.entry;
    if (ready !== undefined && (entry === undefined || this.isBefore(ready.keys!.rank, entry.keys!.rank))) {
      this.readyAt++;
      return ready;
    }
    this.entry = this.following(entry!);
    return entry!;
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
  insert(entry: Entry<In>): void {
    this.ready ??= [];
    this.ready.splice(Math.max(this.readyAt, this.placeOf(this.ready, entry)), 0, entry);
  }

  protected isBefore(rank: number, other: number): boolean {
    return rank < other;
  }

  protected placeOf(sorted: readonly Entry<In>[], entry: Entry<In>): number {
    return placeOf(sorted, entry);
  }

  protected following(entry: Entry<In>): Entry<In> | undefined {
    return entry.next;
  }
}

/** Walks a lane queue from the newest entry to the oldest. */
export class NewestFirst<In> extends Cursor<In> {
  override begin(limit: number): void {
    const { tail, blocked } = this.laneQueue;
    this.entry = tail;
    if (blocked !== undefined) this.ready = blocked.ready.slice(-limit - 1).reverse();
  }

  protected override isBefore(rank: number, other: number): boolean {
    return rank > other;
  }

  protected override placeOf(sorted: readonly Entry<In>[], { keys }: Entry<In>): number {
    const at = sorted.findIndex((entry) => entry.keys!.rank < keys!.rank);
    return at === -1 ? sorted.length : at;
  }

  protected override following(entry: Entry<In>): Entry<In> | undefined {
    return entry.previous;
  }
}
