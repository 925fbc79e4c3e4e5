import type { TenantsStats, TenantStats } from "../contract/stats.ts";
import type { Chunk } from "./chunk.ts";
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

  /** The item at the end of a waiting chunk has come from this tenant. */
  entered(chunk: Chunk<In>, index: number, tenant: Account<In>): void {
    this.#counts(tenant, chunk, index, 1);
    this.#comes(tenant);
    const claim = this.#claim(chunk, index, tenant);
    claim.callers = 1;
    (chunk.claims ??= new Array<Claim<In> | undefined>(chunk.items.length))[index] = claim;
    rowOf(claim).add(claim);
  }

  /** A caller of this tenant shares an item. The claims on one that runs count again once it is put back. */
  joined(chunk: Chunk<In>, index: number, tenant: Account<In>, duplicates: Chunk<In>): void {
    const isWaiting = chunk.laneQueue !== undefined;
    const own = chunk.claims![index]!;
    let claim = (own.all ?? [own]).find((each) => each.tenant === tenant);
    if (claim === undefined) {
      claim = this.#claim(chunk, index, tenant);
      claim.all = own.all ??= [own];
      own.all.push(claim);
      if (isWaiting) this.#comes(tenant);
      // Where its order key blocks the item, no tenant has a place for it.
      if (own.row !== undefined) rowOf(claim).add(claim);
    }
    if (isWaiting) claim.callers++;
    (duplicates.claims ??= [])[duplicates.count - 1] = claim;
  }

  /** One who shares an item has left it. */
  leftShared(duplicates: Chunk<In>, index: number): void {
    const claim = duplicates.claims?.[index];
    if (claim !== undefined) this.#callerLeft(claim);
  }

  /** The first caller of an item has left it to another. */
  handed(chunk: Chunk<In>, index: number, duplicates: Chunk<In>, successor: number): void {
    const claim = chunk.claims![index]!;
    const heir = duplicates.claims![successor]!;
    chunk.claims![index] = heir;
    if (chunk.laneQueue === undefined) return;
    this.#counts(claim.tenant, chunk, index, -1);
    this.#counts(heir.tenant, chunk, index, 1);
    this.#callerLeft(claim);
  }

  /** A waiting entry has moved, to another place in the queue or into a batch. */
  moved(from: Chunk<In>, index: number, to: Chunk<In>, at: number): void {
    const own = from.claims![index]!;
    (to.claims ??= new Array<Claim<In> | undefined>(to.items.length))[at] = own;
    if (to.laneQueue === undefined) {
      // Where turns agreed with the order of arrival for a while, it has left already.
      if (own.callers > 0) this.left(from, index);
      return;
    }
    const isBlocked = to.list !== to.laneQueue;
    for (const claim of own.all ?? [own]) {
      claim.row?.remove(claim);
      claim.chunk = to;
      claim.index = at;
      if (isBlocked) continue;
      claim.place = ++this.#places;
      rowOf(claim).add(claim);
    }
  }

  /** An entry leaves the queue. */
  left(chunk: Chunk<In>, index: number): void {
    const own = chunk.claims![index]!;
    this.#counts(own.tenant, chunk, index, -1);
    if (own.all === undefined) this.#ended(own);
    else for (const claim of own.all) this.#ended(claim);
  }

  /** An entry that a batch had taken waits again, in its old place; `callers` of it by their claims, its first caller's first. */
  putBack(chunk: Chunk<In>, index: number, callers: readonly Claim<In>[]): void {
    const claims = [...new Set(callers)];
    const own = callers[0]!;
    (chunk.claims ??= [])[index] = own;
    this.#counts(own.tenant, chunk, index, 1);
    for (const claim of claims) {
      claim.chunk = chunk;
      claim.index = index;
      claim.callers = callers.filter((each) => each === claim).length;
      claim.all = claims.length > 1 ? claims : undefined;
      this.#comes(claim.tenant);
      rowOf(claim).add(claim);
    }
  }

  /** Its order key blocks it no longer. */
  offered(chunk: Chunk<In>, index: number): void {
    const own = chunk.claims![index]!;
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

  /** An entry of this tenant has come to a waiting chunk, or left it. */
  #counts(tenant: Account<In>, chunk: Chunk<In>, index: number, items: number): void {
    tenant.waiting += items;
    if (chunk.laneQueue!.lane === 2 || chunk.lifted?.[index] === true) tenant.inBulkRoom += items;
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

  #claim(chunk: Chunk<In>, index: number, tenant: Account<In>): Claim<In> {
    return {
      tenant,
      chunk,
      index,
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
    claim.row?.remove(claim);
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
export const rowOf = <In>({ tenant, chunk }: Claim<In>): Row<In> => tenant.rowIn(chunk.laneQueue!.turns!);

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
