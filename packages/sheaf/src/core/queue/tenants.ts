import type { TenantsStats, TenantStats } from "../contract/stats.ts";
import type { Entry } from "./entry.ts";
import { Leavers } from "./leavers.ts";
import { Row, type Claim, type Turns } from "./turns.ts";

/**
 * A tenant may hold this many times the room that is free: alone 6/7 of the queue, and n that flood leave 1/(6n + 1) of it
 * for a newcomer (dynamic thresholds, Choudhury and Hahne, 1998). With 8 a flood left 112 of 1,000 places: too few where 40
 * others send 0.8 of the capacity of four slots, 128 items between two waves of batches.
 */
const roomShare = 6;
/** Most tenants that an estimate looks at. */
const maxScanned = 256;
/** Idle tenants are forgotten when there are more than this, and more than twice those that wait. */
const leastKept = 1024;

/** Whether a tenant that holds `held` places may take one more, with `free` of them free. */
export const mayHold = (held: number, free: number): boolean => held < roomShare * free;

/** The account of a tenant. The tenant that has been served least goes next; of two alike, the one whose turn is earlier. */
export class Account<In> {
  readonly key: unknown;
  share = 1;
  /** Service so far ÷ share, from a common start. */
  served = 0;
  turn = 0;
  /** Items that have gone in its turns. */
  taken = 0;
  /** Its items that were refused. */
  rejected = 0;
  /** Its waiting items; an item that it shares with an earlier caller is that one's. */
  waiting = 0;
  /** Those of them that take the room of bulk calls. */
  inBulkRoom = 0;
  /** Its claims on waiting items. */
  claims = 0;
  /** Its calls and lists that wait for room. */
  waiters = 0;
  readonly leavers: Leavers = new Leavers();
  #lastRow: Row<In> | undefined;
  /** Where it has more than one. */
  #rows: Map<Turns<In>, Row<In>> | undefined;

  constructor(key: unknown) {
    this.key = key;
  }

  rowIn(turns: Turns<In>): Row<In> {
    const last = this.#lastRow;
    if (last?.turns === turns) return last;
    if (last === undefined) return (this.#lastRow = new Row(this, turns));
    this.#rows ??= new Map([[last.turns, last]]);
    let row = this.#rows.get(turns);
    if (row === undefined) this.#rows.set(turns, (row = new Row(this, turns)));
    return (this.#lastRow = row);
  }

  /** It has no claims: without groups it keeps its rows, one for each lane. */
  forgetRows(): void {
    if (this.#rows === undefined || this.#rows.size <= 3) return;
    this.#rows = this.#lastRow = undefined;
  }
}

/**
 * The tenants and their accounts. The tenant that has had the least service for its share goes next; one that comes back
 * starts where the others are, so that it has saved up nothing, and keeps its debts while anything waits. This is start-time
 * fair queueing with the virtual time of WF2Q+ (Bennett and Zhang, 1997).
 */
export class Tenants<In> {
  readonly #byKey: Map<unknown, Account<In>> = new Map();
  /** Service that each tenant has had for its share if it has always waited. */
  #fairService = 0;
  /** The most service of one so far. */
  #highest = 0;
  /** Of the tenants that have claims. */
  #shares = 0;
  #waiting = 0;
  #turns = 0;
  #places = 0;
  #keepAtMost = leastKept;
  /** Counts of the tenants that have been forgotten. */
  readonly #forgotten = { queued: 0, dispatched: 0, rejected: 0 };
  /** Accounts before the choice that is going on. */
  readonly #before: { readonly tenant: Account<In>; readonly served: number; readonly turn: number }[] = [];

  of(key: unknown, share: number): Account<In> {
    let tenant = this.#byKey.get(key);
    if (tenant === undefined) {
      if (this.#byKey.size >= this.#keepAtMost) this.#forgetIdle();
      this.#byKey.set(key, (tenant = new Account(key)));
    }
    if (tenant.share !== share) {
      if (tenant.claims > 0) this.#shares += share - tenant.share;
      tenant.share = share;
    }
    return tenant;
  }

  /** An item has come from its tenant. */
  entered(entry: Entry<In>): void {
    const keys = entry.keys!;
    const tenant = keys.tenant!;
    this.#comes(tenant);
    const claim = (keys.claim = this.#claim(entry, tenant));
    claim.callers = 1;
    this.counts(entry, 1);
    rowOf(claim).add(claim);
  }

  /** A caller shares an item. The claims on one that runs count again once it is put back. */
  joined(entry: Entry<In>, sharer: Entry<In>): void {
    const isWaiting = entry.laneQueue !== undefined;
    const own = entry.keys!.claim!;
    const tenant = sharer.keys!.tenant!;
    let claim = (own.all ?? [own]).find((each) => each.tenant === tenant);
    if (claim === undefined) {
      claim = this.#claim(entry, tenant);
      claim.all = own.all ??= [own];
      own.all.push(claim);
      if (isWaiting) this.#comes(tenant);
      // Where its order key blocks the item, no tenant has a place for it.
      if (own.row !== undefined) rowOf(claim).add(claim);
    }
    if (isWaiting) claim.callers++;
    sharer.keys!.claim = claim;
  }

  /** One who shares an item has left it. */
  leftShared(sharer: Entry<In>): void {
    const claim = sharer.keys?.claim;
    if (claim !== undefined) this.#callerLeft(claim);
  }

  /** The first caller of an item has left it to another. */
  handed(entry: Entry<In>, sharer: Entry<In>): void {
    const claim = entry.keys!.claim!;
    const heir = sharer.keys!.claim!;
    const isWaiting = entry.laneQueue !== undefined;
    if (isWaiting) this.counts(entry, -1);
    entry.keys!.claim = heir;
    if (!isWaiting) return;
    this.counts(entry, 1);
    this.#callerLeft(claim);
  }

  /** A waiting item has moved to another place in the queue. */
  moved(entry: Entry<In>): void {
    const own = entry.keys!.claim!;
    const isBlocked = entry.place !== entry.laneQueue;
    for (const claim of own.all ?? [own]) {
      claim.row?.unlink(claim);
      if (isBlocked) continue;
      claim.place = ++this.#places;
      rowOf(claim).add(claim);
    }
  }

  /** An item is about to leave the queue. */
  left(entry: Entry<In>): void {
    const own = entry.keys!.claim!;
    this.counts(entry, -1);
    if (own.all === undefined) this.#ended(own);
    else for (const claim of own.all) this.#ended(claim);
  }

  /** An item that a batch had taken waits again, in its old place. */
  putBack(entry: Entry<In>): void {
    const keys = entry.keys!;
    const sharers = entry.ties?.sharers?.filter(({ settler }) => settler !== undefined) ?? [];
    const callers = [keys.claim!, ...sharers.map((sharer) => sharer.keys!.claim!)];
    const claims = [...new Set(callers)];
    this.counts(entry, 1);
    for (const claim of claims) {
      claim.callers = callers.filter((each) => each === claim).length;
      claim.all = claims.length > 1 ? claims : undefined;
      this.#comes(claim.tenant);
      rowOf(claim).add(claim);
    }
  }

  /** Its order key blocks it no longer. */
  offered(entry: Entry<In>): void {
    const own = entry.keys!.claim!;
    for (const claim of own.all ?? [own]) if (claim.row === undefined) rowOf(claim).add(claim);
  }

  /** Waiting items that go before the last of `items` more of this tenant, at most: none has more turns than its share. */
  ahead(tenant: Account<In>, items: number): number {
    if (this.#waiting > maxScanned) return Infinity;
    const own = tenant.waiting + items;
    let ahead = own - 1;
    for (const other of this.#byKey.values())
      if (other !== tenant) ahead += Math.min(other.waiting, Math.ceil((own * other.share) / tenant.share));
    return ahead;
  }

  /** An item of this weight has been taken in the turn of this tenant. */
  charge(tenant: Account<In>, weight: number): void {
    const { served } = tenant;
    const price = priceOf(weight);
    this.#pay(tenant, price);
    tenant.taken++;
    if (tenant.served > this.#highest) this.#highest = tenant.served;
    this.#fairService = Math.max(this.#fairService + price / this.#shares, served);
  }

  /** The same for a choice that may not be carried out: `undo` takes it back. */
  tryCharge(tenant: Account<In>, weight: number): void {
    this.#before.push({ tenant, served: tenant.served, turn: tenant.turn });
    this.#pay(tenant, priceOf(weight));
  }

  undo(): void {
    for (let entry = this.#before.pop(); entry !== undefined; entry = this.#before.pop()) {
      entry.tenant.served = entry.served;
      entry.tenant.turn = entry.turn;
    }
  }

  stats(): TenantsStats {
    return busiestOf(this.#byKey.values(), this.#forgotten);
  }

  /** A waiting item counts for its tenant from now on, or no longer. */
  counts(entry: Entry<In>, items: 1 | -1): void {
    const { tenant } = entry.keys!.claim!;
    tenant.waiting += items;
    if (entry.isBulk) tenant.inBulkRoom += items;
  }

  #pay(tenant: Account<In>, price: number): void {
    tenant.served += tenant.share === 1 ? price : price / tenant.share;
    tenant.turn = ++this.#turns;
  }

  /** It has one claim more. */
  #comes(tenant: Account<In>): void {
    if (tenant.claims++ > 0) return;
    this.#waiting++;
    this.#shares += tenant.share;
    if (tenant.served < this.#fairService) tenant.served = this.#fairService;
    tenant.turn = ++this.#turns;
  }

  #claim(entry: Entry<In>, tenant: Account<In>): Claim<In> {
    return {
      tenant,
      entry,
      place: ++this.#places,
      callers: 0,
      row: undefined,
      previous: undefined,
      next: undefined,
      all: undefined,
    };
  }

  #callerLeft(claim: Claim<In>): void {
    if (claim.callers === 0 || --claim.callers > 0) return;
    claim.all?.splice(claim.all.indexOf(claim), 1);
    this.#ended(claim);
  }

  #ended(claim: Claim<In>): void {
    const { tenant } = claim;
    claim.callers = 0;
    claim.row?.unlink(claim);
    if (--tenant.claims > 0) return;
    tenant.forgetRows();
    this.#shares -= tenant.share;
    if (--this.#waiting > 0) return;
    // Nothing waits: all start again without debts. Sums of fractions drift.
    this.#shares = 0;
    this.#fairService = this.#highest;
  }

  #forgetIdle(): void {
    for (const [key, tenant] of this.#byKey)
      if (tenant.claims === 0 && tenant.waiters === 0 && tenant.served <= this.#fairService) {
        this.#byKey.delete(key);
        this.#forgotten.dispatched += tenant.taken;
        this.#forgotten.rejected += tenant.rejected;
      }
    this.#keepAtMost = Math.max(leastKept, 2 * this.#byKey.size);
  }
}

/** The row in which a claim stands, or will when its order key blocks it no longer. */
export const rowOf = <In>({ tenant, entry }: Claim<In>): Row<In> => tenant.rowIn(entry.laneQueue!.turns!);

/** An item without weight is not free, or a flood of them would have every turn. */
const priceOf = (weight: number): number => weight || 1;

/** So many tenants have figures of their own. */
const mostShown = 20;

interface Counted {
  readonly key: unknown;
  readonly share: number;
  readonly waiting: number;
  readonly taken: number;
  readonly rejected: number;
}

/** The tenants with most items, the first one first, and one sum for all others; `forgotten`: of those that are no longer known. */
export function busiestOf(tenants: Iterable<Counted>, forgotten: TenantStats): TenantsStats {
  const busiest: Counted[] = [];
  const others = { ...forgotten };
  for (const tenant of tenants) {
    const place = busiest.findIndex((other) => itemsOf(other) < itemsOf(tenant));
    busiest.splice(place === -1 ? busiest.length : place, 0, tenant);
    if (busiest.length <= mostShown) continue;
    const { waiting, taken, rejected } = busiest.pop()!;
    others.queued += waiting;
    others.dispatched += taken;
    others.rejected += rejected;
  }
  return {
    busiest: busiest.map(({ key, share, waiting: queued, taken: dispatched, rejected }) => ({
      key,
      share,
      queued,
      dispatched,
      rejected,
    })),
    others,
  };
}

const itemsOf = ({ waiting, taken, rejected }: Counted): number => waiting + taken + rejected;
