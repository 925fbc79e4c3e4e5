import type { Lane } from "../contract/settings.ts";
import type { AbortSignalLike } from "../runtime/signals.ts";
import type { Epoch } from "./epoch.ts";
import type { Queue } from "./queue.ts";
import { mayHold, type Account } from "./tenants.ts";
import type { Waiters } from "./waiters.ts";

/** Whether the batcher takes calls, and has room for one. */
export class Admission<In> {
  /** The error of new calls; set when the batcher takes no more, for good unless it `isPassing`. */
  refusal: { readonly error: unknown; readonly isPassing: boolean } | undefined;
  /** Of live calls, and apart from them of bulk ones: a backlog takes no place of a user. */
  readonly rooms: readonly [live: Room<In>, bulk: Room<In>];
  readonly #queue: Queue<In>;
  #orders = 0;

  constructor(queue: Queue<In>) {
    this.#queue = queue;
    this.rooms = [new Room(queue, false), new Room(queue, true)];
  }

  roomOf(lane: Lane): Room<In> {
    return this.rooms[lane === 2 ? 1 : 0];
  }

  /** Where a call of this order key stands that would wait for `room`: behind an earlier one of its key, of which the others have none. */
  lineOf(room: Room<In>, orderKey: unknown, order: number = Infinity): Room<In> {
    const other = this.rooms[room.isBulk ? 0 : 1];
    const isBehind = orderKey !== undefined && other.waiters !== undefined && other.waiters.holds(orderKey, order);
    return isBehind ? other : room;
  }

  /** The order of the next one that waits for room. */
  nextOrder(): number {
    return ++this.#orders;
  }

  /**
   * Checks a call of so many items when it is made, and again after a key function, which may have closed the batcher or
   * aborted the signal.
   * @throws why it may not even try.
   */
  checkOpen(items: number, signal: AbortSignalLike | undefined): void {
    if (this.refusal !== undefined) {
      this.#queue.tally.rejected += items;
      throw this.refusal.error;
    }
    if (signal?.aborted !== true) return;
    this.#queue.tally.aborted += items;
    throw signal.reason;
  }

  // Of those who wait for room.

  get hasWaiters(): boolean {
    return this.rooms.some(({ waiters }) => waiters !== undefined && waiters.size > 0);
  }

  admit(): void {
    for (const { waiters } of this.rooms) waiters?.admit();
  }

  relabel(epoch: Epoch): void {
    for (const { waiters } of this.rooms) waiters?.relabel(epoch);
  }

  /** Takes no more calls. A reason for good stays, the first of them. */
  close(error: unknown): void {
    if (this.refusal === undefined || this.refusal.isPassing) this.refusal = { error, isPassing: false };
  }

  /** Refuses those who wait, in the queue or for room, and all others, until the reason has passed. */
  refuseForNow(error: unknown): void {
    this.refusal ??= { error, isPassing: true };
    this.rejectAll(error);
  }

  /** Rejects everyone who waits. */
  rejectAll(error: unknown): void {
    for (const { waiters } of this.rooms) waiters?.rejectAll(error);
    [...this.#queue.entries()].forEach((entry) => {
      while (entry.settler !== undefined && entry.laneQueue !== undefined)
        this.#queue.cancellation.withdraw(entry, error, "rejected");
    });
  }
}

/** The room of the live lanes, or of bulk: `maxQueueSize` bounds each. */
export class Room<In> {
  /** Those who wait for it: made when the first one does. */
  waiters: Waiters<In> | undefined;
  readonly isBulk: boolean;
  readonly #queue: Queue<In>;

  constructor(queue: Queue<In>, isBulk: boolean) {
    this.#queue = queue;
    this.isBulk = isBulk;
  }

  /** Items in it. */
  get held(): number {
    const { size, inBulkRoom } = this.#queue;
    return this.isBulk ? inBulkRoom : size - inBulkRoom;
  }

  get free(): number {
    return this.#queue.maxSize - this.held;
  }

  hasRoom(): boolean {
    return this.held < this.#queue.maxSize && (this.waiters === undefined || this.waiters.letsPass);
  }

  /** Whether the next item of this tenant has room; undefined without tenants, or where it is not known. */
  hasRoomFor(tenant: Account<In> | undefined): boolean {
    if (!this.hasRoom()) return false;
    if (tenant === undefined) return true;
    const { waiters } = this;
    return (waiters === undefined || waiters.isAdmitting || waiters.of(tenant) === 0) && this.hasShare(tenant);
  }

  /** Leaves room for a newcomer, however much the others send. */
  hasShare({ waiting, inBulkRoom }: Account<In>): boolean {
    return mayHold(this.isBulk ? inBulkRoom : waiting - inBulkRoom, this.free);
  }
}
