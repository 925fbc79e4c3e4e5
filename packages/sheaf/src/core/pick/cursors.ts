import type { Entry } from "../queue/entry.ts";
import type { LaneQueue } from "../queue/group.ts";
import type { Account } from "../queue/tenants.ts";

/** Walks the entries of a lane queue without taking them, formerly blocked ones in their places. */
export class Cursor<In> {
  readonly laneQueue: LaneQueue<In>;
  /** From the newest entry to the oldest. */
  protected readonly newestFirst: boolean;
  #entry: Entry<In> | undefined;
  /** By rank; those before `readyAt` have been taken. */
  #ready: Entry<In>[] | undefined;
  #readyAt = 0;

  constructor(laneQueue: LaneQueue<In>, newestFirst: boolean) {
    this.laneQueue = laneQueue;
    this.newestFirst = newestFirst;
  }

  /** Before the first look. At most `limit` entries will go. */
  begin(limit: number): void {
    const { head, tail, blocked } = this.laneQueue;
    this.#entry = this.newestFirst ? tail : head;
    if (blocked === undefined) return;
    // One more than can go: the oldest of those that stay.
    const { ready } = blocked;
    this.#ready = this.newestFirst ? ready.slice(-limit - 1).reverse() : ready.slice(0, limit + 1);
  }

  atEnd(): boolean {
    return this.#entry === undefined && this.#ready?.[this.#readyAt] === undefined;
  }

  take(): Entry<In> {
    const ready = this.#ready?.[this.#readyAt];
    const entry = this.#entry;
    if (ready !== undefined && (entry === undefined || this.#isBefore(ready, entry))) {
      this.#readyAt++;
      return ready;
    }
    this.#entry = this.newestFirst ? entry!.previous : entry!.next;
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
    this.#ready ??= [];
    const at = this.#ready.findIndex((other) => this.#isBefore(entry, other));
    this.#ready.splice(Math.max(this.#readyAt, at === -1 ? this.#ready.length : at), 0, entry);
  }

  #isBefore({ ties }: Entry<In>, other: Entry<In>): boolean {
    return this.newestFirst ? ties!.rank > other.ties!.rank : ties!.rank < other.ties!.rank;
  }
}
