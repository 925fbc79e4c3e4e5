import type { Admission, Room } from "./admission.ts";
import { type Entry, reject, type Settler, type Terms } from "./entry.ts";
import type { Epoch } from "./epoch.ts";
import { stopsKey } from "./order-keys.ts";
import type { Queue } from "./queue.ts";
import type { Outcome } from "./cancellation.ts";
import { mayHold, type Account } from "./tenants.ts";

/** Waits for room in the queue: a list that is longer than the room, or one call with onQueueFull "wait". */
export class Waiter<In> {
  readonly items: ArrayLike<In>;
  readonly terms: Terms;
  readonly settlerAt: (index: number) => Settler;
  /** The next item to let in. */
  position = 0;
  /**
   * The next item with its keys. Those of a single call are computed when it is made, those of a list item by item, on
   * admission, or with tenants when the item before has been admitted.
   */
  entry: Entry<In> | undefined;
  epoch: Epoch;
  /** Where it waits. */
  line: Waiters<In> | undefined;
  /** The earlier of two that wait has the lower one, in whichever line they stand; 0 before it waits. */
  order = 0;
  /** With order keys, once asked: the index of the last item of each. */
  lastOf: Map<unknown, number> | undefined;
  /** With tenants: the one in whose line it stands. */
  tenant: Account<In> | undefined;

  constructor(
    items: ArrayLike<In>,
    terms: Terms,
    settlerAt: (index: number) => Settler,
    epoch: Epoch,
    entry: Entry<In> | undefined,
  ) {
    this.items = items;
    this.terms = terms;
    this.settlerAt = settlerAt;
    this.epoch = epoch;
    this.entry = entry;
  }

  /** Its items that wait. */
  get left(): number {
    return this.items.length - this.position;
  }

  get hasLeft(): boolean {
    return this.line === undefined;
  }

  /** Its caller leaves. */
  dismiss(error: unknown, outcome: Outcome): void {
    this.line!.dismiss(this, error, outcome);
  }
}

/** Where those go in who have room. */
interface Door<In> {
  readonly name: string;
  readonly admission: Admission<In>;
  readonly queue: Queue<In>;
  entryOf(item: In, settler: Settler, terms: Terms): Entry<In>;
  orderKeyOf(item: In): unknown;
  share(entry: Entry<In>): boolean;
  push(entry: Entry<In>): void;
}

/**
 * Calls that wait for room, of the live lanes or of bulk, admitted in order of arrival as room appears. The items of a list stay
 * in its array. A call whose order key an earlier one in the other line has too stands behind that, and keeps its lane.
 */
export class Waiters<In> {
  /** Calls and lists that wait for room: the size of the set, which every call reads. */
  size = 0;
  /** Items that they hold. */
  items = 0;
  /** In order of arrival; a Set, because a caller in the middle can leave. */
  readonly #waiting: Set<Waiter<In>> = new Set();
  /** With tenants: those of each, the tenant whose turn is next first. */
  readonly #lines: Map<Account<In>, Set<Waiter<In>>> = new Map();
  /** Tenants take turns in waiting for room. */
  readonly byTurns: boolean;
  isAdmitting = false;
  readonly #room: Room<In>;
  readonly #door: Door<In>;

  constructor(room: Room<In>, door: Door<In>, byTurns: boolean) {
    this.#room = room;
    this.#door = door;
    this.byTurns = byTurns;
  }

  /** Whether a call that has room need not stand behind them. */
  get letsPass(): boolean {
    return this.size === 0 || this.byTurns || this.isAdmitting;
  }

  /** Whether one more may wait; a tenant as in the queue. */
  hasRoom(most: number, tenant: Account<In> | undefined): boolean {
    const free = most - this.size;
    return free > 0 && (tenant === undefined || mayHold(this.of(tenant), free));
  }

  /** How many of this tenant wait here. */
  of(tenant: Account<In>): number {
    return this.#lines.get(tenant)?.size ?? 0;
  }

  /** Whether an item of this order key waits here that came before a waiter of this order. */
  holds(key: unknown, order: number): boolean {
    for (const waiter of this.#all()) {
      if (waiter.order >= order) return false;
      if ((this.#lastOf(waiter).get(key) ?? -1) >= waiter.position) return true;
    }
    return false;
  }

  #lastOf(waiter: Waiter<In>): Map<unknown, number> {
    const { items } = waiter;
    return (waiter.lastOf ??= new Map(Array.from(items, (item, index) => [this.#door.orderKeyOf(item), index])));
  }

  /** Lets a waiter of the other line stand here, by its order. */
  #takeOver(waiter: Waiter<In>): void {
    waiter.epoch.unsettled -= waiter.left;
    this.add(waiter);
    const inOrder = this.#all().sort((a, b) => a.order - b.order);
    this.#waiting.clear();
    for (const each of inOrder) this.#waiting.add(each);
  }

  add(waiter: Waiter<In>): void {
    waiter.epoch.unsettled += waiter.left;
    this.#waiting.add(waiter);
    waiter.order ||= this.#door.admission.nextOrder();
    waiter.line = this;
    this.items += waiter.left;
    this.size = this.#waiting.size;
    if (this.byTurns) this.#joinLine(waiter);
    this.#door.queue.cancellation.watch(waiter);
  }

  #remove(waiter: Waiter<In>): void {
    this.#waiting.delete(waiter);
    waiter.line = undefined;
    this.#leaveLine(waiter);
    this.items -= waiter.left;
    this.size = this.#waiting.size;
    this.#door.queue.cancellation.unwatch(waiter);
  }

  /** The index of the next item of this waiter, which has room now. */
  #next(waiter: Waiter<In>): number {
    this.items--;
    return waiter.position++;
  }

  #first(): Waiter<In> | undefined {
    return this.#waiting.values().next().value;
  }

  /** With tenants: the first of the tenant whose turn is next and that may hold more; other tenants go before it then. */
  #takeTurn(mayHoldMore: (tenant: Account<In>) => boolean): Waiter<In> | undefined {
    for (const [tenant, line] of this.#lines) {
      if (!mayHoldMore(tenant)) continue;
      this.#lines.delete(tenant);
      this.#lines.set(tenant, line);
      return line.values().next().value;
    }
    return undefined;
  }

  /** Lets it stand in the line of its next item's tenant. */
  #joinLine(waiter: Waiter<In>): void {
    const tenant = waiter.entry?.keys?.tenant;
    if (tenant === undefined || tenant === waiter.tenant) return;
    this.#leaveLine(waiter);
    let line = this.#lines.get(tenant);
    if (line === undefined) this.#lines.set(tenant, (line = new Set()));
    line.add(waiter);
    waiter.tenant = tenant;
    tenant.waiters++;
  }

  #leaveLine(waiter: Waiter<In>): void {
    const { tenant } = waiter;
    if (tenant === undefined) return;
    const line = this.#lines.get(tenant)!;
    line.delete(waiter);
    if (line.size === 0) this.#lines.delete(tenant);
    waiter.tenant = undefined;
    tenant.waiters--;
  }

  #all(): Waiter<In>[] {
    return [...this.#waiting];
  }

  /** Admits those who wait for room, in order of arrival; tenants by turns, unless order keys must hold across them. */
  admit(): void {
    // A key function that calls the batcher must not admit the items behind its own first.
    if (this.size === 0 || this.isAdmitting) return;
    this.isAdmitting = true;
    try {
      if (this.byTurns) this.#admitByTurns();
      else this.#admitInOrder();
    } finally {
      this.isAdmitting = false;
    }
  }

  #admitInOrder(): void {
    for (let waiter = this.#first(); waiter !== undefined; waiter = this.#first()) {
      const room = this.#door.admission.roomOf(waiter.terms.lane);
      let line = this.#room;
      for (;;) {
        if (room.free <= 0) return;
        if (!this.knowsNext(waiter)) break;
        line = this.#door.admission.lineOf(this.#room, waiter.entry!.keys?.orderKey, waiter.order);
        // A key function may have called the batcher.
        if (room.free <= 0 || waiter.line === undefined) return;
        if (line !== this.#room) break;
        this.#admitNext(waiter);
      }
      this.#remove(waiter);
      if (line !== this.#room) line.waiters!.#takeOver(waiter);
    }
  }

  #admitByTurns(): void {
    const hasShare = (tenant: Account<In>): boolean => this.#room.hasShare(tenant);
    while (this.#room.free > 0) {
      const waiter = this.#takeTurn(hasShare);
      if (waiter === undefined) return;
      this.#admitNext(waiter);
      if (this.knowsNext(waiter)) this.#joinLine(waiter);
      else this.#remove(waiter);
    }
  }

  #admitNext(waiter: Waiter<In>): void {
    this.#next(waiter);
    const entry = waiter.entry!;
    waiter.entry = undefined;
    entry.epoch = waiter.epoch;
    try {
      if (!this.#door.share(entry)) this.#door.push(entry);
    } catch (error) {
      reject(entry.settler!, error);
    }
    waiter.epoch.settled(1); // it counts in the queue now
  }

  /** Computes the keys of a list's next item; one whose keys throw fails here. False where none is left. */
  knowsNext(waiter: Waiter<In>): boolean {
    const { line } = waiter;
    const { items, terms } = waiter;
    while (waiter.entry === undefined && waiter.position < items.length) {
      const settler = waiter.settlerAt(waiter.position);
      try {
        waiter.entry = this.#door.entryOf(items[waiter.position]!, settler, terms);
      } catch (error) {
        // Unless the key function has ended the list, and the item with it.
        if (waiter.line !== line) return false;
        this.#door.queue.tally.rejected++;
        if (line !== undefined) this.#next(waiter);
        else waiter.position++;
        reject(settler, error);
        if (line !== undefined) waiter.epoch.settled(1);
      }
    }
    return waiter.line === line && waiter.entry !== undefined;
  }

  /** Rejects everyone who waits for room. */
  rejectAll(error: unknown): void {
    for (const waiter of this.#all()) this.dismiss(waiter, error, "rejected");
  }

  /** Moves everyone who waits for room to this epoch. */
  relabel(epoch: Epoch): void {
    for (const waiter of this.#all()) {
      this.#door.queue.epochs.takeOver(waiter.epoch, epoch, waiter.left);
      waiter.epoch = epoch;
    }
  }

  /** Its caller leaves. */
  dismiss(waiter: Waiter<In>, error: unknown, outcome: Outcome): void {
    this.#remove(waiter);
    for (; waiter.position < waiter.items.length; waiter.position++) {
      this.#door.queue.tally[outcome]++;
      reject(waiter.settlerAt(waiter.position), error);
      if (outcome !== "aborted") stopsKey(waiter.terms.signal, waiter.entry?.keys?.orderKey, error);
      waiter.epoch.settled(1);
    }
  }
}
