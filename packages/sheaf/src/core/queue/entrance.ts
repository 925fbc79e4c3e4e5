import type { Admission, Room } from "./admission.ts";
import { drainMs, type Waiting } from "../measure/expected-latency.ts";
import { Entry, type Settler, type Terms } from "./entry.ts";
import { Keys } from "./keys.ts";
import type { Group } from "./group.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import { Waiter, Waiters } from "./waiters.ts";
import { BatcherError } from "../contract/errors.ts";
import { dueAtMs } from "../../policies/overtaking.ts";
import { behind, type OrderKey, stopsKey } from "./order-keys.ts";
import type { Queue } from "./queue.ts";
import type { Account } from "./tenants.ts";
import { describe } from "../../shared/describe.ts";
import { capacityOf, type Lane, type Settings } from "../contract/settings.ts";

/** Why a call is refused with `QUEUE_FULL`, and the details of its error. */
export interface Refusal {
  readonly why: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * May refuse a call, or a list of `items` items, before it enters; an option adds a gate. A gate reads no clock: the time is in
 * `terms`. `entry`: of a single item.
 */
export type Gate<In> = (items: number, terms: Terms, entry?: Entry<In>) => Refusal | undefined;

/** Where calls with options or keys enter the queue: calls the key functions, lets equal items share a place, asks the gates. */
export class Entrance<In, Out> {
  readonly gates: Gate<In>[] = [];
  readonly name: string;
  readonly admission: Admission<In>;
  readonly queue: Queue<In>;
  readonly #settings: Settings<In, Out>;
  readonly #cost: CostModel;

  constructor(settings: Settings<In, Out>, admission: Admission<In>, queue: Queue<In>, cost: CostModel) {
    this.name = settings.name;
    this.admission = admission;
    this.queue = queue;
    this.#settings = settings;
    this.#cost = cost;
  }

  /**
   * Admits one call, lets it share an equal item, or lets it wait for room.
   * @throws why it is refused: an item that is too large, what a key function threw, or `QUEUE_FULL`.
   */
  enter(item: In, settler: Settler, terms: Terms, mayWait: boolean): void {
    let entry: Entry<In>;
    try {
      entry = this.entryOf(item, settler, terms);
    } catch (error) {
      this.queue.tally.rejected++;
      throw error;
    }
    const { orderKey, tenant } = entry.keys ?? {};
    const room = this.admission.roomOf(terms.lane);
    // Call waiting callers' key functions before checking the signal: they may abort this call.
    this.admission.lineOf(room, orderKey);
    this.admission.checkOpen(1, terms.signal);
    try {
      this.ask(1, terms, entry);
      if (this.share(entry)) return;
      const mayPass = room.hasRoomFor(tenant) && this.admission.lineOf(room, orderKey) === room;
      entry.epoch = this.queue.epochs.current;
      if (mayPass) this.push(entry);
      else this.hold(entry, settler, mayWait);
    } catch (error) {
      stopsKey(terms.signal, orderKey, error);
      throw error;
    }
  }

  /**
   * Lets a call wait for room. A method of its own: a closure in `enter` would cost every call a context.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  hold(entry: Entry<In>, settler: Settler, mayWait: boolean): void {
    this.enterList([entry.item], () => settler, entry.terms, mayWait, entry);
  }

  /** An item that has no other key than that of its tenant. @throws what a key function threw. */
  inTurn(item: In, terms: Terms): Entry<In> {
    const { fairKey } = this.#settings;
    const keys = new Keys<In>();
    try {
      keys.tenant = this.#tenantOf(fairKey!(item));
    } catch (error) {
      this.queue.tally.rejected++;
      throw error;
    }
    this.admission.checkOpen(1, undefined);
    return new Entry(item, terms, this.queue.epochs.current, keys);
  }

  /**
   * Admits as much of a list as there is room for; the rest waits for room.
   * @throws {BatcherError} `QUEUE_FULL` when there is room for none of it.
   */
  enterList(
    items: ArrayLike<In>,
    settlerAt: (index: number) => Settler,
    terms: Terms,
    mayWait: boolean,
    entry?: Entry<In>,
  ): void {
    const waiter = new Waiter(items, terms, settlerAt, this.queue.epochs.current, entry);
    const own = this.admission.roomOf(terms.lane);
    const room = this.admission.lineOf(own, entry?.keys?.orderKey);
    const waiters = (room.waiters ??= new Waiters(room, this, this.#takesTurns));
    if (waiters.byTurns && !waiters.knowsNext(waiter)) return;
    this.admission.checkOpen(waiter.left, terms.signal);
    waiter.epoch = this.queue.epochs.current;
    const tenant = waiter.entry?.keys?.tenant;
    if (!room.hasRoomFor(tenant) && !((mayWait || room !== own) && waiters.hasRoom(this.queue.maxSize, tenant))) {
      this.#refuse(waiter.left, this.#full(room, tenant), room, tenant);
    }
    waiters.add(waiter);
    waiters.admit();
  }

  /** Refuses a call whose item is not known, where any of its lane would be refused; interactive without `terms`. @throws {BatcherError} `QUEUE_FULL` */
  checkRoom(terms: Terms | undefined): void {
    const { dedupeKey, onQueueFull } = this.#settings;
    // An equal item needs no room, and a caller who may wait for room is not refused.
    if (dedupeKey !== undefined || onQueueFull === "wait" || this.admission.refusal !== undefined) return;
    const room = this.admission.roomOf(terms?.lane ?? 1);
    if (!room.hasRoom()) this.#refuse(1, this.#full(room, undefined), room, undefined);
    // A gate may judge an item by its keys. Behind less than a batch it would hardly refuse one, and is asked when that enters.
    if (terms === undefined || this.queue.size < this.#settings.maxBatchSize || !this.#itemsAreAlike) return;
    this.ask(1, terms, new Entry<In>(undefined as In, terms, this.queue.epochs.current));
  }

  /** Asks the gates. @throws {BatcherError} `QUEUE_FULL` */
  ask(items: number, terms: Terms, entry?: Entry<In>): void {
    for (const gate of this.gates) {
      const refusal = gate(items, terms, entry);
      if (refusal !== undefined) this.#refuse(items, refusal, this.admission.roomOf(terms.lane), entry?.keys?.tenant);
    }
  }

  /** Tenants take turns in waiting for room, unless order keys must hold across them. */
  get #takesTurns(): boolean {
    return this.queue.tenants !== undefined && this.queue.order === undefined;
  }

  get #itemsAreAlike(): boolean {
    const { weigh, groupKey, orderKey, fairKey } = this.#settings;
    return weigh === undefined && groupKey === undefined && orderKey === undefined && fairKey === undefined;
  }

  /** Whose room is full. */
  #full(room: Room<In>, tenant: Account<In> | undefined): Refusal {
    const { maxSize: maxQueueSize } = this.queue;
    const { held, isBulk, waiters } = room;
    const items = isBulk ? "bulk items" : "items";
    const waiting = waiters?.size ?? 0;
    const outside = waiting === 0 ? "" : `, and ${waiting} more calls wait for room`;
    const hint =
      waiting === 0
        ? 'Retry later, raise maxQueueSize, or use many(), map() or onQueueFull: "wait".'
        : "Retry later, raise maxQueueSize, which bounds both, or use many() or map(): a list waits as one call.";
    if (tenant === undefined || held >= maxQueueSize) {
      const why = `the queue is full: ${held} ${items} wait${outside} (maxQueueSize ${maxQueueSize}). ${hint}`;
      return { why, details: { maxQueueSize, waitingForRoom: waiting } };
    }
    const { key } = tenant;
    const own = isBulk ? tenant.inBulkRoom : tenant.waiting - tenant.inBulkRoom;
    const why =
      `the room of tenant ${describe(key)} is full: ${own} of the ${held} waiting ${items} are its own${outside} (maxQueueSize ` +
      `${maxQueueSize}), and the rest is for others. ${hint}`;
    return { why, details: { maxQueueSize, waitingForRoom: waiting, tenant: key, tenantQueued: own } };
  }

  /** @throws {BatcherError} `QUEUE_FULL` */
  #refuse(items: number, { why, details }: Refusal, room: Room<In>, tenant: Account<In> | undefined): never {
    this.queue.tally.rejected += items;
    this.queue.refused[room.isBulk ? "bulk" : "live"] += items;
    if (tenant !== undefined) tenant.rejected += items;
    throw new BatcherError("QUEUE_FULL", `${this.name}: ${why}`, {
      ...details,
      queued: room.held,
      drainMs: drainMs(this.#cost, capacityOf(this.#settings), this.#waitingFor(room, tenant)),
    });
  }

  /** The items that must go before the room is empty, or before all of the tenant's have gone. */
  #waitingFor({ isBulk }: Room<In>, tenant: Account<In> | undefined): Waiting {
    const { tenants } = this.queue;
    const lane = isBulk ? 2 : 1;
    const items = this.queue.ahead(lane);
    const weight = this.queue.weightAhead(lane);
    if (tenant === undefined) return { items, weight };
    const ahead = Math.min(items, tenants!.ahead(tenant, 1));
    return { items: ahead, weight: (weight * ahead) / Math.max(1, items) };
  }

  /** The order key alone; none where the function throws, as it will when the item enters. */
  orderKeyOf(item: In): unknown {
    try {
      return this.#settings.orderKey?.(item);
    } catch {
      return undefined;
    }
  }

  /** Calls the key functions. @throws what one threw, or that the item is too large. */
  entryOf(item: In, settler: Settler, terms: Terms): Entry<In> {
    const { weigh, groupKey, orderKey, dedupeKey, fairKey, maxItemWeight = Infinity, name } = this.#settings;
    if (this.#itemsAreAlike && dedupeKey === undefined)
      return new Entry(item, terms, this.queue.epochs.current, undefined, settler);
    const weight = weigh === undefined ? 1 : weigh(item);
    if (typeof weight !== "number" || !(weight >= 0) || weight === Infinity) {
      throw new TypeError(`${name}: weigh(item) must return a finite number >= 0, got ${describe(weight)}`);
    }
    if (weight > maxItemWeight) {
      throw new BatcherError(
        "ITEM_TOO_LARGE",
        `${name}: the item weighs ${weight}, and maxItemWeight is ${maxItemWeight}. ` +
          "Split it, or raise maxItemWeight.",
        { weight, maxItemWeight },
      );
    }
    const keys = new Keys<In>();
    keys.weight = weight;
    keys.group = groupKey?.(item);
    keys.orderKey = orderKey?.(item);
    keys.dedupeKey = terms.alone ? undefined : dedupeKey?.(item);
    keys.tenant = fairKey === undefined ? undefined : this.#tenantOf(fairKey(item));
    return new Entry(item, terms, this.queue.epochs.current, keys, settler);
  }

  #tenantOf(key: unknown): Account<In> {
    const { shareOf, name } = this.#settings;
    if (shareOf === undefined) return this.queue.tenants!.of(key, 1);
    const share = shareOf(key);
    if (typeof share !== "number" || !(share > 0) || share === Infinity) {
      throw new TypeError(`${name}: shareOf(key) must return a finite number > 0, got ${describe(share)}`);
    }
    return this.queue.tenants!.of(key, share);
  }

  push(entry: Entry<In>): void {
    const { keys, terms } = entry;
    const { lane, arrivedAtMs } = terms;
    const group = this.queue.groupOf(keys?.group);
    if (keys !== undefined) {
      // It must not overtake an earlier item of its key, so those move to its lane too, ahead of it.
      const ahead = keys.orderKey === undefined ? undefined : this.queue.order!.get(keys.orderKey);
      if (ahead !== undefined) this.#lift(ahead, undefined, group, lane);
      if (this.#settings.weigh !== undefined) {
        const waiting = { items: this.queue.size, weight: this.queue.weight };
        keys.dueAtMs = dueAtMs(this.#cost, capacityOf(this.#settings), waiting, keys.weight, arrivedAtMs);
      }
    }
    this.queue.push(entry, group.laneQueue(lane));
    this.queue.cancellation.watch(entry);
    if (keys === undefined) return;
    if (keys.tenant !== undefined) this.queue.tenants!.entered(entry);
    if (this.queue.order !== undefined) entry.tie().rank = this.queue.order.nextRank();
    if (keys.dedupeKey !== undefined) this.queue.equal!.add(entry);
    if (keys.orderKey !== undefined) this.queue.order!.enter(entry, lane);
  }

  /**
   * Joins an equal item: takes no room of its own, and a waiting item gets the higher priority of the two.
   * @throws where a consumer made the call and its key has stopped.
   */
  share(sharer: Entry<In>): boolean {
    const { terms } = sharer;
    const { dedupeKey, orderKey } = sharer.keys ?? {};
    const stopped = orderKey === undefined ? undefined : behind(terms.signal, orderKey);
    if (stopped !== undefined) {
      this.queue.tally.aborted++;
      throw stopped;
    }
    const entry = dedupeKey === undefined ? undefined : this.queue.equal!.get(dedupeKey);
    if (entry === undefined) return false;
    const { laneQueue } = entry;
    const ties = entry.tie();
    const { lane } = terms;
    sharer.epoch = entry.epoch;
    sharer.epoch.unsettled++;
    if (ties.sharers?.some(({ settler }) => settler !== undefined) === true) ties.sharers.push(sharer);
    else ties.sharers = [sharer];
    this.queue.cancellation.watch(sharer);
    if (this.queue.tenants !== undefined) this.queue.tenants.joined(entry, sharer);
    if (laneQueue !== undefined && lane < laneQueue.lane) {
      if (ties.order !== undefined) this.#lift(ties.order, entry, laneQueue.group, lane);
      this.queue.promote(entry, lane);
    } else if (laneQueue?.group.newestFirst === true && ties.order === undefined) {
      // Under standing overload its place is that of the latest caller who shares it.
      this.queue.renew(entry);
    }
    return true;
  }

  /** Promotes the waiting items of an order key, those before `last` in the same group, to a lane. */
  #lift(order: OrderKey<In>, last: Entry<In> | undefined, group: Group<In>, lane: Lane): void {
    if (order.head === undefined || order.lowestLane <= lane) return;
    let lowestLane: Lane = lane;
    for (const entry of order.waiting()) {
      const laneQueue = entry.laneQueue!;
      if (last === undefined && laneQueue.group !== group)
        lowestLane = laneQueue.lane > lowestLane ? laneQueue.lane : lowestLane;
      if (entry === last) return;
      if (laneQueue.group === group && laneQueue.lane > lane) this.queue.promote(entry, lane);
    }
    order.lowestLane = lowestLane;
  }
}
