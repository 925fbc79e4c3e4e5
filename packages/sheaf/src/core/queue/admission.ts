import type { Arrival, Terms } from "./arrival.ts";
import { Chunk, reject, type KeyOrder, type LaneGroup, type Settler, type ItemRef } from "./chunk.ts";
import { timeoutError, type Settlement, type Outcome } from "./settlement.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import { Waiters, type Waiter } from "./waiters.ts";
import type { Epoch, Epochs } from "./epoch.ts";
import { BatcherError } from "../contract/errors.ts";
import { drainMs, expectedByWeightMs, expectedLatencyMs } from "../observe/expected-latency.ts";
import { dueAtMs, urgency } from "../../policies/overtaking.ts";
import { defaults } from "../contract/options.ts";
import type { OrderKeys } from "./order-keys.ts";
import type { Queue } from "./queue.ts";
import { describe } from "../../shared/describe.ts";
import type { Settings, Lane } from "../contract/settings.ts";

/** Waiting items looked at for an estimate. */
const maxScanned = 1024;

/**
 * Admits calls to the queue: calls the key functions, shares equal items, refuses what does not fit and keeps in
 * `waiters` what may wait for room.
 */
export class Admission<In, Out> {
  readonly waiters: Waiters<In>;
  /** Most items that may wait. `"auto"`: the default until run times are known, then computed from them. */
  maxQueueSize: number;
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #calls: Settlement<In>;
  readonly #epochs: Epochs;
  readonly #order: OrderKeys<In> | undefined;
  readonly #cost: CostModel;
  readonly #restsMs: (nowMs: number) => readonly number[];
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
    restsMs: (nowMs: number) => readonly number[],
  ) {
    this.#settings = settings;
    this.#cost = cost;
    this.#restsMs = restsMs;
    this.waiters = new Waiters(calls.cancellation.aborts);
    this.maxQueueSize = settings.maxQueueSize === "auto" ? defaults.maxQueueSize : settings.maxQueueSize;
    this.#queue = queue;
    this.#calls = calls;
    this.#epochs = epochs;
    this.#order = order;
  }

  hasRoom(): boolean {
    return this.#queue.size < this.maxQueueSize && this.waiters.size === 0;
  }

  /**
   * Admits one call, lets it share an equal item, or lets it wait for room.
   * @throws why it is refused: an item that is too large, what a key function threw, or `QUEUE_FULL`.
   */
  enter(item: In, settler: Settler, terms: Terms, mayWait: boolean): void {
    const arrival = this.#arrivalOf(item, terms.alone);
    if (this.#settings.refuseLate !== undefined) this.refuseLate(1, terms, arrival.weight);
    if (this.#share(arrival, settler, terms)) return;
    if (this.hasRoom()) this.#push(arrival, settler, terms, this.#epochs.current);
    else this.#hold(item, arrival, settler, terms, mayWait);
  }

  /** A method of its own: a closure in `enter` would cost every call a context. */
  #hold(item: In, arrival: Arrival<In>, settler: Settler, terms: Terms, mayWait: boolean): void {
    this.enterList([item], () => settler, terms, mayWait, arrival);
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
    const { maxQueueSize } = this;
    if (!this.hasRoom() && !(mayWait && this.waiters.size < maxQueueSize)) {
      this.#refuse(
        items.length,
        `the queue is full: ${this.#queue.size} items wait (maxQueueSize ${maxQueueSize}). ` +
          'Retry later, raise maxQueueSize, or use many(), map() or onQueueFull: "wait".',
        { maxQueueSize },
      );
    }
    const epoch = this.#epochs.current;
    const { signal } = terms;
    const waiter: Waiter<In> = { items, position: 0, settlerAt, arrival, epoch, ...terms };
    epoch.unsettled += items.length;
    this.waiters.add(waiter, () => this.#dismiss(waiter, signal!.reason, "aborted"));
    this.admitWaiters();
  }

  /** Admits those who wait for room, in order of arrival. */
  admitWaiters(): void {
    if (this.waiters.size === 0) return;
    for (let waiter = this.waiters.first(); waiter !== undefined; waiter = this.waiters.first()) {
      while (waiter.position < waiter.items.length) {
        if (this.#queue.size >= this.maxQueueSize) return;
        const index = this.waiters.next(waiter);
        const settler = waiter.settlerAt(index);
        const { epoch } = waiter;
        try {
          const arrival = waiter.arrival ?? this.#arrivalOf(waiter.items[index]!, waiter.alone);
          if (!this.#share(arrival, settler, waiter)) this.#push(arrival, settler, waiter, epoch);
        } catch (error) {
          reject(settler, error);
        }
        epoch.settled(1); // it counts in the queue now
      }
      this.waiters.remove(waiter);
    }
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
   * more than a late answer, and a queue that is older than its deadlines serves no caller. `weight`: of a single item.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  refuseLate(items: number, { lane, arrivedAtMs, deadlineMs }: Terms, weight?: number): void {
    const { refuseLate = Infinity } = this.#settings;
    if (refuseLate === Infinity || deadlineMs === Infinity || !this.hasRoom()) return;
    const ahead = this.#queue.ahead(lane) + this.waiters.items;
    const restsMs = this.#restsMs(arrivedAtMs);
    // With a slot free it goes at once: its run corrects an estimate that is too high.
    if (ahead === 0 && restsMs.length < this.#settings.concurrency) return;
    const expectedMs =
      weight === undefined || this.#cost.perWeightMs === 0
        ? expectedLatencyMs(this.#cost, this.#settings, ahead + items - 1, restsMs)
        : this.#expectedMs(weight, lane, arrivedAtMs, restsMs);
    const timeoutMs = Math.round((deadlineMs - arrivedAtMs) * 1000) / 1000;
    if (expectedMs === undefined || expectedMs <= refuseLate * timeoutMs) return;
    this.#refuse(
      items,
      `a result is expected after ${Math.round(expectedMs)} ms, too late for ${timeoutMs} ms (timeoutMs): ` +
        `${ahead} items wait before it. Retry later, raise timeoutMs or add capacity.`,
      { expectedMs, timeoutMs },
    );
  }

  /** Of an item of this weight: shorter ones go before it. */
  #expectedMs(weight: number, lane: Lane, nowMs: number, restsMs: readonly number[]): number {
    let items = 0;
    let before = 0;
    let seen = 0;
    const loneMs = this.#cost.of(1, weight, weight);
    const own = urgency(loneMs, 0);
    this.#queue.everyChunk((chunk) => {
      if (chunk.laneQueue!.lane > lane || seen > maxScanned) return;
      for (let i = chunk.head; i < chunk.count; i++) {
        if (chunk.settlers[i] === undefined) continue;
        seen++;
        const its = chunk.weights![i]!;
        if (urgency(this.#cost.of(1, its, its), nowMs - chunk.arrivedAtMs(i)) < own) continue;
        items++;
        before += its;
      }
    });
    return expectedByWeightMs(this.#cost, this.#settings, { items, weight: before }, weight, restsMs);
  }

  #refuse(items: number, why: string, details: Readonly<Record<string, number>>): never {
    this.#calls.tally.rejected += items;
    throw new BatcherError("QUEUE_FULL", `${this.#settings.name}: ${why}`, {
      ...details,
      queued: this.#queue.size,
      drainMs: drainMs(this.#cost, this.#settings, { items: this.#queue.size, weight: this.#queue.weight }),
    });
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
    const { weigh, groupKey, orderKey, dedupeKey, maxItemWeight = Infinity, name } = this.#settings;
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
      };
    } catch (error) {
      this.#calls.tally.rejected++;
      throw error;
    }
  }

  #push(arrival: Arrival<In>, settler: Settler, terms: Terms, epoch: Epoch): void {
    const { item, weight, orderKey, dedupeKey } = arrival;
    const { arrivedAtMs, lane, alone, keepsPlace } = terms;
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
    if (alone) this.#queue.isolate(chunk, index);
    if (keepsPlace) this.#queue.keepPlace(chunk, index);
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
