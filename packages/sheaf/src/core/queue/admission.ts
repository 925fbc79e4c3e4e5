import type { Arrival, Terms } from "./arrival.ts";
import { Chunk, reject, type KeyOrder, type LaneGroup, type Settler, type ItemRef } from "./chunks/chunk.ts";
import { timeoutError, type Settlement, type Outcome } from "./settlement.ts";
import type { BatcherStats } from "../contract/stats.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import { Waiters, type Waiter } from "./waiters.ts";
import type { Epoch, Epochs } from "./chunks/epoch.ts";
import { BatcherError } from "../contract/errors.ts";
import {
  drainMs,
  expectedByWeightMs,
  expectedLatencyMs,
  expectedNewestFirstMs,
  mayBeWithin,
  type Waiting,
} from "../observe/expected-latency.ts";
import { dueAtMs, urgency } from "../../policies/overtaking.ts";
import { defaults } from "../contract/options.ts";
import type { OrderKeys } from "./order-keys.ts";
import type { Queue } from "./queue.ts";
import { mayHold, type Tenant } from "./tenants/tenants.ts";
import { describe } from "../../shared/describe.ts";
import { choosesByWeight, type Lane, type Settings } from "../contract/settings.ts";
import type { AbortSignalLike } from "../runtime/globals.ts";

/** The state of the rest of the batcher, for estimates. */
export interface Ahead {
  /** Rests of the runs in flight, in milliseconds. */
  restsMs(nowMs: number): readonly number[];
  /** Null while there is no standing overload. */
  overload(nowMs: number): BatcherStats["overload"];
}

/** Waiting items looked at for an estimate. */
const maxScanned = 1024;

/**
 * Admits calls to the queue: calls the key functions, shares equal items, refuses what does not fit and keeps in
 * `waiters` what may wait for room.
 */
export class Admission<In, Out> {
  readonly waiters: Waiters<In>;
  /** The error of new calls; set when the batcher takes no more. */
  refusal: { readonly error: unknown } | undefined;
  /** Most items that may wait. `"auto"`: the default until run times are known, then computed from them. */
  maxQueueSize: number;
  /** Tenants take turns in waiting for room. */
  readonly #byTurns: boolean;
  #isAdmitting = false;
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #calls: Settlement<In>;
  readonly #epochs: Epochs;
  readonly #order: OrderKeys<In> | undefined;
  readonly #cost: CostModel;
  readonly #aheadOf: Ahead;
  /** Items that an equal call joins, by dedupe key. */
  readonly #equal: Map<unknown, ItemRef<In>> = new Map();
  readonly #leaveDedupe = (ref: ItemRef<In>): void => {
    ref.leaveDedupe = undefined;
    if (this.#equal.get(ref.dedupeKey) === ref) this.#equal.delete(ref.dedupeKey);
  };

  constructor(
    settings: Settings<In, Out>,
    queue: Queue<In>,
    calls: Settlement<In>,
    epochs: Epochs,
    order: OrderKeys<In> | undefined,
    cost: CostModel,
    aheadOf: Ahead,
  ) {
    this.#settings = settings;
    this.#cost = cost;
    this.#aheadOf = aheadOf;
    this.waiters = new Waiters(calls.cancellation.aborts);
    this.maxQueueSize = settings.maxQueueSize === "auto" ? defaults.maxQueueSize : settings.maxQueueSize;
    this.#queue = queue;
    this.#byTurns = queue.tenants !== undefined && order === undefined;
    this.#calls = calls;
    this.#epochs = epochs;
    this.#order = order;
  }

  /**
   * Checks a call of so many items when it is made, and again after a key function, which may have closed the batcher or
   * aborted the signal.
   * @throws why it may not even try.
   */
  checkOpen(items: number, signal: AbortSignalLike | undefined): void {
    if (this.refusal !== undefined) {
      this.#calls.tally.rejected += items;
      throw this.refusal.error;
    }
    if (signal?.aborted !== true) return;
    this.#calls.tally.aborted += items;
    throw signal.reason;
  }

  hasRoom(): boolean {
    return this.#queue.size < this.maxQueueSize && (this.waiters.size === 0 || this.#byTurns || this.#isAdmitting);
  }

  /** Whether the next item of this tenant has room; undefined without tenants, or where it is not known. */
  hasRoomFor(tenant: Tenant<In> | undefined): boolean {
    return (
      this.hasRoom() &&
      (tenant === undefined || ((tenant.waiters === 0 || this.#isAdmitting) && this.#hasShare(tenant)))
    );
  }

  /** Leaves room for a newcomer, however much the others send. */
  #hasShare({ waiting }: Tenant<In>): boolean {
    return mayHold(waiting, this.maxQueueSize - this.#queue.size);
  }

  /**
   * Admits one call, lets it share an equal item, or lets it wait for room.
   * @throws why it is refused: an item that is too large, what a key function threw, or `QUEUE_FULL`.
   */
  enter(item: In, settler: Settler, terms: Terms, mayWait: boolean): void {
    const arrival = this.#arrivalOf(item, terms.alone);
    this.checkOpen(1, terms.signal);
    if (this.#settings.refuseLate !== undefined) this.refuseLate(1, terms, arrival);
    if (this.#share(arrival, settler, terms)) return;
    if (this.hasRoomFor(arrival.tenant)) this.#push(arrival, settler, terms, this.#epochs.current);
    else this.hold(arrival, settler, terms, mayWait);
  }

  /**
   * Lets a call wait for room. A method of its own: a closure in `enter` would cost every call a context.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  hold(arrival: Arrival<In>, settler: Settler, terms: Terms, mayWait: boolean): void {
    this.enterList([arrival.item], () => settler, terms, mayWait, arrival);
  }

  /** The tenant of an item that has no other key. @throws what a key function threw. */
  tenantOf(item: In): Tenant<In> {
    let tenant: Tenant<In>;
    try {
      tenant = this.#tenantOf(this.#settings.fairKey!(item));
    } catch (error) {
      this.#calls.tally.rejected++;
      throw error;
    }
    this.checkOpen(1, undefined);
    return tenant;
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
    arrival?: Arrival<In>,
  ): void {
    const { signal } = terms;
    const waiter: Waiter<In> = {
      items,
      position: 0,
      settlerAt,
      arrival,
      epoch: this.#epochs.current,
      isIn: false,
      ...terms,
    };
    if (this.#byTurns && !this.#knowsNext(waiter)) return;
    this.checkOpen(items.length - waiter.position, signal);
    const epoch = (waiter.epoch = this.#epochs.current);
    const tenant = waiter.arrival?.tenant;
    if (!this.hasRoomFor(tenant) && !(mayWait && this.waiters.hasRoom(this.maxQueueSize, tenant))) {
      this.#refuseFull(items.length - waiter.position, tenant);
    }
    epoch.unsettled += items.length - waiter.position;
    this.waiters.add(waiter, () => this.#dismiss(waiter, signal!.reason, "aborted"));
    if (this.#byTurns) this.waiters.joinLine(waiter);
    this.admitWaiters();
  }

  /** Admits those who wait for room, in order of arrival; tenants by turns, unless order keys must hold across them. */
  admitWaiters(): void {
    // A key function that calls the batcher must not admit the items behind its own first.
    if (this.waiters.size === 0 || this.#isAdmitting) return;
    this.#isAdmitting = true;
    try {
      if (this.#byTurns) this.#admitByTurns();
      else this.#admitInOrder();
    } finally {
      this.#isAdmitting = false;
    }
  }

  #admitInOrder(): void {
    for (let waiter = this.waiters.first(); waiter !== undefined; waiter = this.waiters.first()) {
      for (;;) {
        if (this.#queue.size >= this.maxQueueSize) return;
        if (!this.#knowsNext(waiter)) break;
        // A key function may have called the batcher.
        if (this.#queue.size >= this.maxQueueSize) return;
        this.#admitNext(waiter);
      }
      this.waiters.remove(waiter);
    }
  }

  #admitByTurns(): void {
    const hasShare = (tenant: Tenant<In>): boolean => this.#hasShare(tenant);
    while (this.#queue.size < this.maxQueueSize) {
      const waiter = this.waiters.takeTurn(hasShare);
      if (waiter === undefined) return;
      this.#admitNext(waiter);
      if (this.#knowsNext(waiter)) this.waiters.joinLine(waiter);
      else this.waiters.remove(waiter);
    }
  }

  #admitNext(waiter: Waiter<In>): void {
    const index = this.waiters.next(waiter);
    const settler = waiter.settlerAt(index);
    const { epoch } = waiter;
    const arrival = waiter.arrival!;
    waiter.arrival = undefined;
    try {
      if (!this.#share(arrival, settler, waiter)) this.#push(arrival, settler, waiter, epoch);
    } catch (error) {
      reject(settler, error);
    }
    epoch.settled(1); // it counts in the queue now
  }

  /** Computes the keys of a list's next item; one whose keys throw fails here. False where none is left. */
  #knowsNext(waiter: Waiter<In>): boolean {
    const { isIn } = waiter;
    while (waiter.arrival === undefined && waiter.position < waiter.items.length) {
      try {
        waiter.arrival = this.#arrivalOf(waiter.items[waiter.position]!, waiter.alone);
      } catch (error) {
        // Unless the key function has aborted the list.
        if (waiter.isIn !== isIn) return false;
        const index = isIn ? this.waiters.next(waiter) : waiter.position++;
        reject(waiter.settlerAt(index), error);
        if (isIn) waiter.epoch.settled(1);
      }
    }
    return waiter.isIn === isIn && waiter.arrival !== undefined;
  }

  /** Rejects with `TIMEOUT` those whose deadline passed while they waited for room. */
  expire(nowMs: number): void {
    for (const waiter of this.waiters.expired(nowMs)) {
      const error = timeoutError(this.#settings.name, waiter.deadlineMs - waiter.arrivedAtMs, true);
      this.#dismiss(waiter, error, "timeout");
    }
  }

  /** Rejects everyone who waits for room. */
  rejectWaiters(error: unknown): void {
    for (const waiter of this.waiters.all()) this.#dismiss(waiter, error, "rejected");
  }

  /** Moves everyone who waits for room to this epoch. */
  relabelWaiters(epoch: Epoch): void {
    for (const waiter of this.waiters.all()) {
      this.#epochs.takeOver(waiter.epoch, epoch, waiter.items.length - waiter.position);
      waiter.epoch = epoch;
    }
  }

  /**
   * Refuses what would probably not be answered in time, judged by the last of `items`: a quick refusal helps a caller
   * more than a late answer, and a queue that is older than its deadlines serves no caller. `arrival`: of a single item.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  refuseLate(items: number, terms: Terms, arrival?: Arrival<In>): void {
    const { lane, arrivedAtMs, deadlineMs } = terms;
    const { refuseLate = Infinity } = this.#settings;
    const { weight, tenant } = arrival ?? {};
    if (refuseLate === Infinity || deadlineMs === Infinity || !this.hasRoomFor(tenant)) return;
    const inLane = this.#queue.ahead(lane) + this.waiters.items;
    const ahead = tenant === undefined ? inLane : Math.min(inLane, this.#queue.tenants!.ahead(tenant, items));
    const restsMs = this.#aheadOf.restsMs(arrivedAtMs);
    // With a slot free it goes at once: its run corrects an estimate that is too high.
    if (ahead === 0 && restsMs.length < this.#settings.concurrency) return;
    const bySize = weight === undefined || this.#cost.perWeightMs === 0;
    const inOrderMs = bySize
      ? expectedLatencyMs(this.#cost, this.#settings, ahead + items - 1, restsMs)
      : this.#expectedMs(weight, lane, arrivedAtMs, restsMs);
    const overload =
      arrival !== undefined && this.#goesNewestFirst(arrival, terms) && this.#aheadOf.overload(arrivedAtMs);
    const expectedMs =
      overload && inOrderMs !== undefined
        ? expectedNewestFirstMs(this.#cost, this.#settings, overload, inOrderMs, restsMs)
        : inOrderMs;
    const timeoutMs = Math.round((deadlineMs - arrivedAtMs) * 1000) / 1000;
    const limitMs = refuseLate * timeoutMs;
    if (expectedMs === undefined || expectedMs <= limitMs) return;
    if (bySize && !overload && mayBeWithin(limitMs, this.#cost, this.#settings, ahead + items - 1, restsMs)) return;
    this.#refuse(
      items,
      `a result is expected after ${Math.round(expectedMs)} ms, too late for ${timeoutMs} ms (timeoutMs): ` +
        (overload ? "newer items will go before it" : `${ahead} items wait before it`) +
        ". Retry later, raise timeoutMs or add capacity.",
      { expectedMs, timeoutMs },
      tenant,
    );
  }

  /** Whether standing overload changes its place, and arrivals alone decide how far. */
  #goesNewestFirst({ orderKey, tenant }: Arrival<In>, { lane }: Terms): boolean {
    if (lane !== 1 || orderKey !== undefined || tenant !== undefined) return false;
    return !choosesByWeight(this.#settings, this.#cost) && this.#queue.onlyGroup?.newestFirst === true;
  }

  /** Of an item of this weight: shorter ones go before it, or all that came before. */
  #expectedMs(weight: number, lane: Lane, nowMs: number, restsMs: readonly number[]): number {
    let items = 0;
    let before = 0;
    let seen = 0;
    const loneMs = this.#cost.of(1, weight, weight);
    const own = urgency(loneMs, 0);
    const byWeight = choosesByWeight(this.#settings, this.#cost);
    this.#queue.everyChunk((chunk) => {
      if (chunk.laneQueue!.lane > lane || seen > maxScanned) return;
      for (let i = chunk.head; i < chunk.count; i++) {
        if (chunk.settlers[i] === undefined) continue;
        seen++;
        const its = chunk.weights![i]!;
        if (byWeight && urgency(this.#cost.of(1, its, its), nowMs - chunk.arrivedAtMs(i)) < own) continue;
        items++;
        before += its;
      }
    });
    return expectedByWeightMs(this.#cost, this.#settings, { items, weight: before }, weight, restsMs);
  }

  /** Says whose room is full. */
  #refuseFull(items: number, tenant: Tenant<In> | undefined): never {
    const { maxQueueSize } = this;
    const { size } = this.#queue;
    const hint = 'Retry later, raise maxQueueSize, or use many(), map() or onQueueFull: "wait".';
    if (tenant === undefined || size >= maxQueueSize)
      this.#refuse(
        items,
        `the queue is full: ${size} items wait (maxQueueSize ${maxQueueSize}). ${hint}`,
        {
          maxQueueSize,
        },
        tenant,
      );
    const { key, waiting } = tenant;
    this.#refuse(
      items,
      `the room of tenant ${describe(key)} is full: ${waiting} of the ${size} waiting items are its own (maxQueueSize ` +
        `${maxQueueSize}), and the rest is for others. ${hint}`,
      { maxQueueSize, tenant: key, tenantQueued: waiting },
      tenant,
    );
  }

  #refuse(items: number, why: string, details: Readonly<Record<string, unknown>>, tenant?: Tenant<In>): never {
    this.#calls.tally.rejected += items;
    if (tenant !== undefined) tenant.rejected += items;
    throw new BatcherError("QUEUE_FULL", `${this.#settings.name}: ${why}`, {
      ...details,
      queued: this.#queue.size,
      drainMs: drainMs(this.#cost, this.#settings, this.#waitingOf(tenant)),
    });
  }

  /** The items that must go before all of the tenant's have, at most all that wait. */
  #waitingOf(tenant: Tenant<In> | undefined): Waiting {
    const { size: items, weight, tenants } = this.#queue;
    if (tenant === undefined) return { items, weight };
    const ahead = Math.min(items, tenants!.ahead(tenant, 1));
    return { items: ahead, weight: (weight * ahead) / Math.max(1, items) };
  }

  #dismiss(waiter: Waiter<In>, error: unknown, outcome: Outcome): void {
    this.waiters.remove(waiter);
    for (; waiter.position < waiter.items.length; waiter.position++) {
      this.#calls.tally[outcome]++;
      reject(waiter.settlerAt(waiter.position), error);
      waiter.epoch.settled(1);
    }
  }

  /** Calls the key functions. @throws what one threw, or that the item is too large. */
  #arrivalOf(item: In, alone: boolean): Arrival<In> {
    const { weigh, groupKey, orderKey, dedupeKey, fairKey, maxItemWeight = Infinity, name } = this.#settings;
    try {
      const weight = weigh === undefined ? 1 : weigh(item);
      if (typeof weight !== "number" || !(weight >= 0) || weight === Infinity) {
        throw new TypeError(`${name}: weigh(item) must return a finite number >= 0, got ${describe(weight)}`);
      }
      if (weight > maxItemWeight) {
        throw new BatcherError(
          "ITEM_TOO_LARGE",
          `${name}: the item weighs ${weight}, more than one item may (maxItemWeight ${maxItemWeight}). ` +
            "Split it, or raise maxItemWeight.",
          { weight, maxItemWeight },
        );
      }
      return {
        item,
        weight,
        group: groupKey?.(item),
        orderKey: orderKey?.(item),
        dedupeKey: alone ? undefined : dedupeKey?.(item),
        tenant: fairKey === undefined ? undefined : this.#tenantOf(fairKey(item)),
      };
    } catch (error) {
      this.#calls.tally.rejected++;
      throw error;
    }
  }

  #tenantOf(key: unknown): Tenant<In> {
    const { shareOf, name } = this.#settings;
    if (shareOf === undefined) return this.#queue.tenants!.of(key, 1);
    const share = shareOf(key);
    if (typeof share !== "number" || !(share > 0) || share === Infinity) {
      throw new TypeError(`${name}: shareOf(key) must return a finite number > 0, got ${describe(share)}`);
    }
    return this.#queue.tenants!.of(key, share);
  }

  #push(arrival: Arrival<In>, settler: Settler, terms: Terms, epoch: Epoch): void {
    const { item, weight, orderKey, dedupeKey, tenant } = arrival;
    const { arrivedAtMs, lane, alone } = terms;
    const group = this.#queue.groupOf(arrival.group);
    // It must not overtake an earlier item of its key, so those move to its lane too, ahead of it.
    const ahead = orderKey === undefined ? undefined : this.#order!.get(orderKey);
    if (ahead !== undefined) this.#lift(ahead, undefined, group, lane);

    const chunk = this.#queue.push(item, settler, arrivedAtMs, group.laneQueue(lane), epoch);
    const index = chunk.count - 1;
    if (this.#settings.weigh !== undefined) {
      const waiting = { items: this.#queue.size - 1, weight: this.#queue.weight };
      this.#queue.weigh(chunk, weight, dueAtMs(this.#cost, this.#settings, waiting, weight, arrivedAtMs));
    }
    if (tenant !== undefined) this.#queue.tenants!.entered(chunk, index, tenant);
    if (alone) this.#queue.isolate(chunk, index);
    this.#note(chunk, index, terms);
    if (this.#settings.orderKey === undefined && this.#settings.dedupeKey === undefined) return;

    const leaveDedupe = dedupeKey === undefined ? undefined : this.#leaveDedupe;
    const ref: ItemRef<In> = {
      chunk,
      index,
      order: undefined,
      previous: undefined,
      next: undefined,
      place: this.#order?.nextPlace() ?? 0,
      dedupeKey,
      duplicates: undefined,
      leaveDedupe,
    };
    (chunk.refs ??= [])[index] = ref;
    if (dedupeKey !== undefined) this.#equal.set(dedupeKey, ref);
    if (orderKey !== undefined) this.#order!.enter(ref, orderKey, lane);
  }

  /** Items of a batch that did not run can be joined again, where no equal item has come meanwhile. */
  rejoin({ refs, settlers }: Chunk<In>): void {
    refs?.forEach((ref, index) => {
      if (settlers[index] === undefined || ref.dedupeKey === undefined || this.#equal.has(ref.dedupeKey)) return;
      ref.leaveDedupe = this.#leaveDedupe;
      this.#equal.set(ref.dedupeKey, ref);
    });
  }

  /** Joins an equal item: takes no room of its own, and a waiting item gets the higher priority of the two. */
  #share(arrival: Arrival<In>, settler: Settler, terms: Terms): boolean {
    const { dedupeKey } = arrival;
    const ref = dedupeKey === undefined ? undefined : this.#equal.get(dedupeKey);
    if (ref === undefined) return false;
    const { arrivedAtMs, lane } = terms;
    const epoch = ref.chunk.epochOf(ref.index);
    if (ref.duplicates === undefined || ref.duplicates.live === 0) ref.duplicates = new Chunk<In>(epoch, undefined);
    const { duplicates } = ref;
    duplicates.push(arrival.item, settler, arrivedAtMs);
    epoch.unsettled++;
    this.#note(duplicates, duplicates.count - 1, terms);
    const { laneQueue } = ref.chunk;
    if (arrival.tenant !== undefined) this.#queue.tenants!.joined(ref.chunk, ref.index, arrival.tenant, duplicates);
    if (laneQueue !== undefined && lane < laneQueue.lane) {
      if (ref.order !== undefined) this.#lift(ref.order, ref, laneQueue.group, lane);
      this.#queue.promote(ref.chunk, ref.index, lane);
    } else if (laneQueue?.group.newestFirst === true && ref.order === undefined) {
      // Under standing overload its place is that of the latest caller who shares it.
      this.#queue.renew(ref.chunk, ref.index);
    }
    return true;
  }

  #note(chunk: Chunk<In>, index: number, { signal, deadlineMs, tag }: Terms): void {
    if (signal !== undefined) this.#calls.cancellation.signal(chunk, index, signal);
    if (deadlineMs !== Infinity) this.#calls.cancellation.deadline(chunk, index, deadlineMs);
    if (tag !== undefined) (chunk.tags ??= [])[index] = tag;
  }

  /** Promotes the waiting items of an order key, those before `last` in the same group, to a lane. */
  #lift(order: KeyOrder<In>, last: ItemRef<In> | undefined, group: LaneGroup<In>, lane: Lane): void {
    if (order.first === undefined || order.lowestLane <= lane) return;
    let lowestLane: Lane = lane;
    for (let ref: ItemRef<In> | undefined = order.first; ref !== undefined; ref = ref.next) {
      const laneQueue = ref.chunk.laneQueue!;
      if (last === undefined && laneQueue.group !== group)
        lowestLane = laneQueue.lane > lowestLane ? laneQueue.lane : lowestLane;
      if (ref === last) return;
      if (laneQueue.group === group && laneQueue.lane > lane) this.#queue.promote(ref.chunk, ref.index, lane);
    }
    order.lowestLane = lowestLane;
  }
}
