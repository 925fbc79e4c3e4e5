import { createBatcher } from "../../../core/create-batcher.ts";
import type { Batcher, DetailedResult } from "../../../core/contract/batcher.ts";
import type { BatcherOptions } from "../../../core/contract/options.ts";
import type { Clock } from "../../../core/runtime/runtime.ts";
import type { Policy } from "../../../policies/policy.ts";
import type { NatsDetailedResult } from "../wire/detailed-result.ts";
import type { StartOptions } from "./call.ts";
import type { Routing } from "./routing.ts";

/** More are not published at a time, however large the fleet is. */
const largestWindow = 10_000;
/**
 * Items of all front ends that are published and not answered, in full batches of every slot. With 1 a slot that is free waits
 * for the next items to come; each more is a run that an item of a quiet tenant waits for.
 */
const batchesAhead = 2;

/** An item of a call that waits for its tenant's turn to be published. */
export class WaitingItem {
  readonly item: unknown;
  readonly options: StartOptions;
  readonly #dueAtMs: number;

  constructor(item: unknown, options: StartOptions, nowMs: number) {
    this.item = item;
    this.options = options;
    this.#dueAtMs = nowMs + options.timeoutMs;
  }

  waitedMs(nowMs: number): number {
    return nowMs + this.options.timeoutMs - this.#dueAtMs;
  }

  /** The options for the rest of its way. Its signal is the batcher's, which ends with the call. */
  optionsFrom(nowMs: number, signal: AbortSignal): StartOptions {
    return { ...this.options, timeoutMs: Math.max(1, this.#dueAtMs - nowMs), signal };
  }
}

export interface TurnParts {
  readonly name: string;
  readonly clock: Clock;
  readonly maxQueueSize: number;
  readonly fairKey: (item: never) => unknown;
  readonly shareOf: BatcherOptions<unknown>["shareOf"];
  readonly routing: Routing;
  readonly publish: (item: unknown, options: StartOptions, turnMs: number) => Promise<NatsDetailedResult<unknown>>;
}

/**
 * The tenants of a front end take turns in front of the queue, which goes by arrival: no more is published at a time than keeps
 * the workers busy, so that an item waits behind few others there.
 */
export function turnsOf(parts: TurnParts): Batcher<WaitingItem, NatsDetailedResult<unknown>> {
  const { name, clock, maxQueueSize, fairKey, shareOf, routing, publish } = parts;
  const policy: Policy = {
    name: "window",
    decide: ({ outstanding, waiting }) => (outstanding - waiting < windowOf(routing) ? { run: 1 } : "wait"),
  };
  return createBatcher<WaitingItem, NatsDetailedResult<unknown>>(
    async ([first], { signal }) => {
      const [waiting, nowMs] = [first!, clock.now()];
      const { item } = waiting;
      return [await publish(item, waiting.optionsFrom(nowMs, signal), waiting.waitedMs(nowMs)).catch(asError)];
    },
    {
      name,
      clock,
      maxQueueSize,
      maxBatchSize: 1,
      concurrency: largestWindow,
      policy,
      fairKey: ({ item }) => fairKey(item as never),
      shareOf,
    },
  );
}

/** The wait for its turn is a part of the wait in the queue. */
export const withTurn = <Out>({
  value,
  queueMs,
}: DetailedResult<NatsDetailedResult<Out>>): NatsDetailedResult<Out> => ({
  ...value,
  queueMs: queueMs + value.queueMs,
});

/** Items that a front end may have published and not answered; the front ends share them evenly. */
export function windowOf({ workers }: Pick<Routing, "workers">): number {
  let places = 0;
  let frontEnds = 1;
  for (const { slots, maxBatchSize, frontEnds: seen = 1 } of workers) {
    places += slots * maxBatchSize;
    frontEnds = Math.max(frontEnds, seen);
  }
  return Math.max(1, Math.min(largestWindow, Math.ceil((batchesAhead * places) / frontEnds)));
}

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));
