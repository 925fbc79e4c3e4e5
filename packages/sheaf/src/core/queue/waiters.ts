import type { AbortListeners } from "../runtime/abort-listeners.ts";
import type { Arrival, Terms } from "./arrival.ts";
import type { Settler } from "./chunks/chunk.ts";
import type { Epoch } from "./chunks/epoch.ts";
import { mayHold, type Tenant } from "./tenants/tenants.ts";

/** Waits for room in the queue: a list that is longer than the room, or one call with onQueueFull "wait". */
export interface Waiter<In> extends Terms {
  readonly items: ArrayLike<In>;
  /** The next item to let in. */
  position: number;
  settlerAt(index: number): Settler;
  /**
   * Keys of a single call, computed when it was made; those of a list are computed item by item, on admission, or with
   * tenants when the item before has been admitted.
   */
  arrival: Arrival<In> | undefined;
  epoch: Epoch;
  /** It waits here. */
  isIn: boolean;
  /** With tenants: the one in whose line it stands. */
  tenant?: Tenant<In> | undefined;
  /** Its listener on `signal`, while it waits here. */
  onAbort?: () => void;
}

/**
 * Calls that wait for room, admitted in order of arrival as room appears. The items of a list stay in its array.
 */
export class Waiters<In> {
  /** Calls and lists that wait for room: the size of the set, which every call reads. */
  size = 0;
  /** Items that they hold. */
  items = 0;
  /** A lower bound of their deadlines. */
  earliestDeadlineMs: number = Infinity;
  /** In order of arrival; a Set, because a caller in the middle can leave. */
  readonly #waiting: Set<Waiter<In>> = new Set();
  /** With tenants: those of each, the tenant whose turn is next first. */
  readonly #lines: Map<Tenant<In>, Set<Waiter<In>>> = new Map();
  readonly #aborts: AbortListeners;

  constructor(aborts: AbortListeners) {
    this.#aborts = aborts;
  }

  /** Whether one more may wait; a tenant as in the queue. */
  hasRoom(most: number, tenant: Tenant<In> | undefined): boolean {
    const free = most - this.size;
    return free > 0 && (tenant === undefined || mayHold(tenant.waiters, free));
  }

  add(waiter: Waiter<In>, onAbort: () => void): void {
    this.#waiting.add(waiter);
    waiter.isIn = true;
    this.items += waiter.items.length - waiter.position;
    this.size = this.#waiting.size;
    if (waiter.deadlineMs < this.earliestDeadlineMs) this.earliestDeadlineMs = waiter.deadlineMs;
    if (waiter.signal === undefined) return;
    waiter.onAbort = onAbort;
    this.#aborts.add(waiter.signal, onAbort);
  }

  remove(waiter: Waiter<In>): void {
    this.#waiting.delete(waiter);
    waiter.isIn = false;
    this.#leaveLine(waiter);
    this.items -= waiter.items.length - waiter.position;
    this.size = this.#waiting.size;
    // Or the timer for a deadline that no longer matters would keep the process alive.
    if (this.size === 0) this.earliestDeadlineMs = Infinity;
    if (waiter.onAbort !== undefined) this.#aborts.remove(waiter.signal!, waiter.onAbort);
  }

  /** The index of the next item of this waiter, which has room now. */
  next(waiter: Waiter<In>): number {
    this.items--;
    return waiter.position++;
  }

  first(): Waiter<In> | undefined {
    return this.#waiting.values().next().value;
  }

  /** With tenants: the first of the tenant whose turn is next and that may hold more; other tenants go before it then. */
  takeTurn(mayHoldMore: (tenant: Tenant<In>) => boolean): Waiter<In> | undefined {
    for (const [tenant, line] of this.#lines) {
      if (!mayHoldMore(tenant)) continue;
      this.#lines.delete(tenant);
      this.#lines.set(tenant, line);
      return line.values().next().value;
    }
    return undefined;
  }

  /** Lets it stand in the line of its next item's tenant. */
  joinLine(waiter: Waiter<In>): void {
    const tenant = waiter.arrival?.tenant;
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

  all(): Waiter<In>[] {
    return [...this.#waiting];
  }

  /** Those whose deadline has passed. The code that calls this removes them. */
  expired(nowMs: number): Waiter<In>[] {
    if (this.earliestDeadlineMs > nowMs) return [];
    this.earliestDeadlineMs = Infinity;
    return this.all().filter(({ deadlineMs }) => {
      if (deadlineMs > nowMs) this.earliestDeadlineMs = Math.min(this.earliestDeadlineMs, deadlineMs);
      return deadlineMs <= nowMs;
    });
  }
}
