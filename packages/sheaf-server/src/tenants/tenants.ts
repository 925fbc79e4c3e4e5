import type { BatcherStats } from "sheaf";
import { Meter, type TenantBounds } from "./meter.ts";

/** Items by outcome, as the batcher counts them. */
export type ItemCounts = BatcherStats["items"];
export type ItemOutcome = keyof ItemCounts;

export interface TenantFigures {
  readonly name: string;
  /** Its items that wait or run. */
  readonly inFlight: number;
  readonly items: ItemCounts;
}

/** The busiest tenants, and one sum for all others. */
export interface TenantsFigures {
  readonly busiest: readonly TenantFigures[];
  readonly others: TenantFigures;
  /** Items that a bound kept out before they waited, over all tenants. */
  readonly keptOut: number;
}

/** Tenants with figures of their own; each has a metric series per outcome. */
const mostShown = 20;
/** The name of the sum; no tenant can have it. */
const othersName = "(others)";
/** Idle tenants are forgotten when there are more than this, and more than twice those that are busy. */
const leastKept = 1024;
/** Factor by which a tenant must be busier than one of the busiest to take its place, so that places seldom change. */
const clearlyBusier = 2;
/** Half-life of a tenant's activity. */
const halfLifeMs = 60_000;

const noItems = (): Mutable<ItemCounts> => ({ ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 });
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** One of those who share the server; the object is the batchers' `fairKey`. */
export class Tenant {
  readonly name: string;
  share: number;
  readonly meter: Meter;
  /** Its counts while it is one of the busiest. */
  readonly items: Mutable<ItemCounts> = noItems();
  isShown = false;
  #activity = 0;
  #activeAtMs = 0;

  constructor(name: string, share: number, bounds: TenantBounds) {
    this.name = name;
    this.share = share;
    this.meter = new Meter(bounds);
  }

  /** Its items of the last minutes; older ones count less. */
  activity(nowMs: number): number {
    return this.#activity * 2 ** ((this.#activeAtMs - nowMs) / halfLifeMs);
  }

  note(items: number, nowMs: number): void {
    this.#activity = this.activity(nowMs) + items;
    this.#activeAtMs = nowMs;
  }
}

/** The recently busy tenants of a server and their counts. */
export class Tenants {
  readonly #byName: Map<string, Tenant> = new Map();
  readonly #shown: Set<Tenant> = new Set();
  readonly #others: Mutable<ItemCounts> = noItems();
  #inFlight = 0;
  #keptOut = 0;
  #keepAtMost = leastKept;

  of(name: string, share: number, bounds: TenantBounds): Tenant {
    let tenant = this.#byName.get(name);
    if (tenant === undefined) {
      if (this.#byName.size >= this.#keepAtMost) this.#forgetIdle();
      this.#byName.set(name, (tenant = new Tenant(name, share, bounds)));
    }
    tenant.share = share;
    tenant.meter.bounds = bounds;
    return tenant;
  }

  /** Records items that wait or run. */
  entered(tenant: Tenant, items: number): void {
    this.#inFlight += items;
    this.#asked(tenant, items);
  }

  left(items: number): void {
    this.#inFlight -= items;
  }

  /** Records items refused before they waited. */
  refused(tenant: Tenant, items: number): void {
    this.#keptOut += items;
    this.#asked(tenant, items);
    this.count(tenant, "rejected", items);
  }

  figures(): TenantsFigures {
    const busiest = [...this.#shown].map(({ name, meter: { inFlight }, items }) => ({ name, inFlight, items }));
    const inFlight = busiest.reduce((rest, one) => rest - one.inFlight, this.#inFlight);
    return { busiest, others: { name: othersName, inFlight, items: this.#others }, keptOut: this.#keptOut };
  }

  #asked(tenant: Tenant, items: number): void {
    const nowMs = performance.now();
    tenant.note(items, nowMs);
    if (!tenant.isShown && tenant.name !== othersName) this.#show(tenant, nowMs);
  }

  /** Records how items ended. Total counts never fall. */
  count(tenant: Tenant, outcome: ItemOutcome, items: number): void {
    (tenant.isShown ? tenant.items : this.#others)[outcome] += items;
  }

  /** Gives it a place among the busiest, if there is one. */
  #show(tenant: Tenant, nowMs: number): void {
    if (this.#shown.size >= mostShown) {
      const [least] = [...this.#shown].sort((a, b) => a.activity(nowMs) - b.activity(nowMs));
      if (tenant.activity(nowMs) < clearlyBusier * least!.activity(nowMs)) return;
      this.#shown.delete(least!);
      least!.isShown = false;
      for (const outcome of Object.keys(this.#others) as ItemOutcome[]) {
        this.#others[outcome] += least!.items[outcome];
        least!.items[outcome] = 0;
      }
    }
    this.#shown.add(tenant);
    tenant.isShown = true;
  }

  #forgetIdle(): void {
    const nowMs = performance.now();
    for (const [name, tenant] of this.#byName)
      if (!tenant.isShown && tenant.meter.isIdle(nowMs)) this.#byName.delete(name);
    this.#keepAtMost = Math.max(leastKept, 2 * this.#byName.size);
  }
}
