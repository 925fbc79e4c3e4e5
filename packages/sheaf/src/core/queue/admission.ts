import type { AbortSignalLike } from "../runtime/runtime.ts";
import { capacityOf, type Lane, type Settings } from "../contract/settings.ts";
import { type Account, mayHold } from "./tenants.ts";
import type { Settlement } from "./settlement.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import type { Waiters } from "./waiters.ts";
import { BatcherError } from "../contract/errors.ts";
import { drainMs, type Waiting } from "../measure/expected-latency.ts";
import type { Queue } from "./queue.ts";
import { describe } from "../../shared/describe.ts";

/** An item with its keys, each computed once. */
export interface Arrival<In> {
  readonly item: In;
  readonly weight: number;
  readonly group: unknown;
  readonly orderKey: unknown;
  readonly dedupeKey: unknown;
  /** With `fairKey`. */
  readonly tenant: Account<In> | undefined;
}

/** How the caller of an item or a list waits. */
export interface Terms {
  readonly lane: Lane;
  readonly signal: AbortSignalLike | undefined;
  /** `Infinity` without a timeout. */
  readonly deadlineAtMs: number;
  readonly arrivedAtMs: number;
  readonly tag: unknown;
  readonly alone: boolean;
}

/**
 * May refuse a call or a list of so many items before it enters: an option adds one. It knows the time by the arrival only.
 * `arrival`: of a single item.
 * @throws {BatcherError}
 */
export type Gate<In> = (items: number, terms: Terms, arrival?: Arrival<In>) => void;

/** Whether there is room for a call, and the errors of those that are refused. */
export class Admission<In, Out> {
  /** Those who wait for room: made when the first one does. */
  waiters: Waiters<In> | undefined;
  /** The error of new calls; set when the batcher takes no more. */
  refusal: { readonly error: unknown } | undefined;
  readonly gates: Gate<In>[] = [];
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #calls: Settlement<In>;
  readonly #cost: CostModel;

  constructor(settings: Settings<In, Out>, queue: Queue<In>, calls: Settlement<In>, cost: CostModel) {
    this.#settings = settings;
    this.#queue = queue;
    this.#calls = calls;
    this.#cost = cost;
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
    return this.#queue.size < this.#queue.maxSize && (this.waiters === undefined || this.waiters.letsPass);
  }

  /** Whether the next item of this tenant has room; undefined without tenants, or where it is not known. */
  hasRoomFor(tenant: Account<In> | undefined): boolean {
    if (!this.hasRoom()) return false;
    return tenant === undefined || ((tenant.waiters === 0 || this.waiters!.isAdmitting) && this.hasShare(tenant));
  }

  /** Leaves room for a newcomer, however much the others send. */
  hasShare({ waiting }: Account<In>): boolean {
    return mayHold(waiting, this.#queue.maxSize - this.#queue.size);
  }

  /** Says whose room is full. */
  refuseFull(items: number, tenant: Account<In> | undefined): never {
    const { size, maxSize: maxQueueSize } = this.#queue;
    const hint = 'Retry later, raise maxQueueSize, or use many(), map() or onQueueFull: "wait".';
    if (tenant === undefined || size >= maxQueueSize)
      this.refuse(
        items,
        `the queue is full: ${size} items wait (maxQueueSize ${maxQueueSize}). ${hint}`,
        {
          maxQueueSize,
        },
        tenant,
      );
    const { key, waiting } = tenant;
    this.refuse(
      items,
      `the room of tenant ${describe(key)} is full: ${waiting} of the ${size} waiting items are its own (maxQueueSize ` +
        `${maxQueueSize}), and the rest is for others. ${hint}`,
      { maxQueueSize, tenant: key, tenantQueued: waiting },
      tenant,
    );
  }

  /** @throws {BatcherError} `QUEUE_FULL` */
  refuse(items: number, why: string, details: Readonly<Record<string, unknown>>, tenant?: Account<In>): never {
    this.#calls.tally.rejected += items;
    if (tenant !== undefined) tenant.rejected += items;
    throw new BatcherError("QUEUE_FULL", `${this.#settings.name}: ${why}`, {
      ...details,
      queued: this.#queue.size,
      drainMs: drainMs(this.#cost, capacityOf(this.#settings), this.#waitingOf(tenant)),
    });
  }

  /** The items that must go before all of the tenant's have, at most all that wait. */
  #waitingOf(tenant: Account<In> | undefined): Waiting {
    const { size: items, weight, tenants } = this.#queue;
    if (tenant === undefined) return { items, weight };
    const ahead = Math.min(items, tenants!.ahead(tenant, 1));
    return { items: ahead, weight: (weight * ahead) / Math.max(1, items) };
  }
}
