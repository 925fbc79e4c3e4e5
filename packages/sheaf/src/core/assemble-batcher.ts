import type { BatchRecord, Policy } from "../policies/policy.ts";
import { Admission } from "./queue/admission.ts";
import type { Terms } from "./queue/arrival.ts";
import { answerOf, type Answer } from "./answer.ts";
import type { Batcher, BatcherLoad, Result } from "./batcher.ts";
import { callable } from "./callable.ts";
import { UtilisationMeter } from "./observe/utilisation.ts";
import { Settlement } from "./dispatch/settlement.ts";
import type { Chunk, Settler } from "./queue/chunk.ts";
import { systemClock } from "./runtime/clock.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { Epochs } from "./queue/epoch.ts";
import type { BatchFunction, Executor } from "./executor.ts";
import { LearnedCost } from "./observe/learned-cost.ts";
import { Lifecycle } from "./lifecycle.ts";
import { manyCall, settleCall, type MultiCall } from "./features/multi-call.ts";
import { mapOver } from "./features/map.ts";
import type { BatcherOptions, CallOptions } from "./options.ts";
import { NextBatch } from "./dispatch/next-batch.ts";
import { OrderKeys } from "./features/order-keys.ts";
import { Queue } from "./queue/queue.ts";
import { RateLimiter } from "./features/rate-limit.ts";
import { newAbortController, warnOnce, type AbortSignalLike } from "./runtime/globals.ts";
import { Scheduler } from "./dispatch/scheduler.ts";
import { describe } from "../shared/describe.ts";
import { checkCallOptions, laneOf, settingsOf } from "./settings.ts";
import { Statistics, type BatcherStats } from "./observe/stats.ts";
import { executorOf } from "./wrap-executor.ts";

// One executor for all promises, so that no closure is made per call: it puts `resolve` where the next entry's settler
// stands. A variable for the function itself would be a pointer from old to new memory at every call, which costs the
// garbage collector more than the rest of a call.
let target: Chunk;
const capture = (resolve: (value: never) => void): void => {
  target.settlers[target.count] = resolve as Settler;
};

/** As `createBatcher`, with the default policy as an argument: the core itself prefers none. */
export function assembleBatcher<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out>,
  defaultPolicy: () => Policy,
): Batcher<In, Result<Out>> {
  const settings = settingsOf(run, options, defaultPolicy);
  const { clock, name } = settings;
  const executor: Executor<In, Out> = typeof run === "function" ? executorOf(run, settings.concurrency) : run;

  const limiter = new RateLimiter(settings.rateLimit);
  const limits = {
    maxBatchSize: settings.maxBatchSize,
    maxBatchWeight: Math.min(settings.maxBatchWeight ?? Infinity, limiter.maxWeight),
    padded: settings.batchWeight === "padded",
  };
  const order = settings.orderKey === undefined ? undefined : new OrderKeys<In>();
  const epochs = new Epochs();
  const calls = new Settlement<In>(
    () => clock.now(),
    name,
    order,
    () => scheduler.wake(),
  );
  const queue = new Queue<In>(
    settings.maxBatchSize,
    epochs,
    calls.cancellation,
    order,
    settings.groupKey !== undefined,
  );
  calls.attach(queue);
  const next = new NextBatch<In>(limits, queue, order, settings.dedupe === "running");
  const cost = new LearnedCost();
  const admission = new Admission<In, Out>(settings, queue, calls, epochs, order, cost, () => dispatcher.inFlight);
  // On a clock of its own, as in a simulation, a batcher says nothing about this process.
  const utilisation = clock === systemClock ? new UtilisationMeter(settings.concurrency) : undefined;
  const statistics = new Statistics(limits, settings.cost, cost, utilisation);
  const listeners = new Set<(record: BatchRecord) => void>();
  const dispatcher = new Dispatcher<In, Out>(executor, settings, calls, order, {
    recorded: (record, nowMs) => {
      scheduler.observe(record, nowMs);
      statistics.observe(record);
      for (const listener of listeners) notify(listener, record);
    },
    failed: (error) => limiter.observe(error, clock.now()),
    paused: (retryAfterMs) => limiter.observe({ retryAfterMs }, clock.now()),
    retried: (items, weight) => {
      const nowMs = clock.now();
      limiter.spend(nowMs, items, weight);
      return nowMs;
    },
    ranAgain: (items, weight) => {
      statistics.ranAgain();
      limiter.spend(clock.now(), items, weight);
    },
    answered: (chunk, index, result) => {
      if (result instanceof Error) limiter.observe(result, clock.now());
      calls.settle(chunk, index, result, clock.now());
    },
    freed: (nowMs) => scheduler.freed(nowMs),
  });
  const parts = { settings, queue, next, calls, admission, dispatcher, limiter, cost };
  const scheduler = new Scheduler<In, Out>(parts);
  const lifecycle = new Lifecycle<In, Out>(parts, scheduler, epochs, executor);

  const laneQueue = settings.groupKey === undefined ? queue.groupOf(undefined).laneQueue(1) : undefined;
  // No key, weight, deadline or signal: nothing to ask and nothing to watch.
  const isPlain =
    laneQueue !== undefined &&
    settings.weigh === undefined &&
    settings.orderKey === undefined &&
    settings.dedupeKey === undefined &&
    settings.timeoutMs === undefined;
  const mayWait = settings.onQueueFull === "wait";
  const warnOfListener = warnOnce();

  const call = (item: In, callOptions?: unknown): Promise<Out> => {
    // First of all: a clock may call the batcher, and what it does must not come between a call and its place.
    scheduler.arriving(1);
    if (isPlain && (typeof callOptions !== "object" || callOptions === null) && lifecycle.refusal === undefined) {
      if (admission.hasRoom()) {
        const chunk = queue.tail(laneQueue, epochs.current);
        if (target !== chunk) target = chunk as unknown as Chunk;
        const promise = new Promise<Out>(capture);
        queue.fill(chunk, laneQueue, item, scheduler.stampMs);
        return promise;
      }
    }
    return enter(item, callOptions as CallOptions | undefined, mayWait);
  };

  /** After `scheduler.arriving`. */
  const enter = (item: In, callOptions: CallOptions | number | null | undefined, waits: boolean): Promise<Out> =>
    new Promise<Out>((resolve) => {
      // What this throws rejects the promise, as a throw in an executor does.
      admission.enter(item, resolve as Settler, termsOf(callOptions, 1), waits);
    });

  /** @throws what the call must be rejected with when it may not even try. */
  const termsOf = (callOptions: CallOptions | number | null | undefined, items: number): Terms => {
    const isObject = typeof callOptions === "object" && callOptions !== null;
    const { signal, timeoutMs, priority, tag, alone = false } = isObject ? callOptions : {};
    if (lifecycle.refusal !== undefined) {
      calls.tally.rejected += items;
      throw lifecycle.refusal.error;
    }
    if (isObject) checkCallOptions(callOptions);
    const watched = signal as unknown as AbortSignalLike | undefined;
    if (watched?.aborted === true) {
      calls.tally.aborted += items;
      throw watched.reason;
    }
    const arrivedAtMs = scheduler.stampMs;
    const lane = laneOf(priority);
    const waitMs = timeoutMs ?? settings.timeoutMs ?? Infinity;
    if (settings.refuseLate !== undefined && waitMs !== Infinity) admission.refuseLate(items, lane, waitMs);
    const deadlineMs = arrivedAtMs + waitMs;
    return { lane, signal: watched, deadlineMs, arrivedAtMs, tag, alone };
  };

  const enterList = <T>(
    items: Iterable<In>,
    callOptions: CallOptions | undefined,
    listOf: (size: number, resolve: (value: T) => void, reject: (error: unknown) => void) => MultiCall,
  ): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const array = arrayOf(items);
      if (array.length === 0) return resolve([] as T);
      scheduler.arriving(array.length);
      const terms = termsOf(callOptions, array.length);
      // Throws before anything is enqueued, which refuses the list whole.
      admission.enterList(array, listOf(array.length, resolve, reject), terms, mayWait);
    });

  const notify = (listener: (record: BatchRecord) => void, record: BatchRecord): void => {
    try {
      listener(record);
    } catch (error) {
      warnOfListener(`${name}: a subscriber threw; its further errors are not reported.`, error);
    }
  };

  const methods = {
    ask: (item: In, callOptions?: CallOptions) =>
      new Promise<Answer<Out>>((resolve, reject) => {
        scheduler.arriving(1);
        const settler: Settler = { fulfil: (...outcome) => resolve(answerOf<Out>(...outcome)), reject };
        admission.enter(item, settler, termsOf(callOptions, 1), mayWait);
      }),

    askAll: (items: Iterable<In>, callOptions?: CallOptions): Promise<PromiseSettledResult<Answer<Out>>[]> =>
      enterList(items, callOptions, (size, resolve) => settleCall(size, resolve, answerOf<Out>)),

    many: (items: Iterable<In>, callOptions?: CallOptions): Promise<Out[]> => enterList(items, callOptions, manyCall),

    settle: (items: Iterable<In>, callOptions?: CallOptions): Promise<PromiseSettledResult<Out>[]> =>
      enterList(items, callOptions, (size, resolve) => settleCall(size, resolve)),

    map: (items: Iterable<In> | AsyncIterable<In>, callOptions?: CallOptions) => {
      // Its own signal withdraws what still waits when the consumer leaves early; the caller's is passed on to it.
      const controller = newAbortController();
      const { signal } = callOptions ?? {};
      checkCallOptions(callOptions ?? {});
      const watched = signal as unknown as AbortSignalLike | undefined;
      let passOn = (): void => undefined;
      const begin = (): Promise<never> | undefined => {
        if (watched === undefined) return undefined;
        return new Promise((_, reject) => {
          passOn = () => {
            controller.abort(watched.reason);
            reject(watched.reason);
          };
          if (watched.aborted) passOn();
          else calls.cancellation.aborts.add(watched, passOn);
        });
      };
      return mapOver<In, Out>(items, {
        window: Math.max(1, Math.min(admission.maxQueueSize, settings.maxBatchSize * (settings.concurrency + 1), 4096)),
        begin,
        hasRoom: () => admission.hasRoom(),
        call: (item) => {
          scheduler.arriving(1);
          return enter(item, { ...callOptions, signal: controller.signal }, true);
        },
        withdraw: () => {
          if (watched !== undefined) calls.cancellation.aborts.remove(watched, passOn);
          controller.abort(lifecycle.closedError("map() ended before this item had run."));
        },
      });
    },

    flush: (): Promise<void> => lifecycle.flush(),

    drain: (): Promise<void> => lifecycle.drain(),

    close: ({ graceMs }: { readonly graceMs?: number | undefined } = {}): Promise<void> => lifecycle.close(graceMs),

    ready: (): Promise<void> => lifecycle.readiness,

    stats: (): BatcherStats => {
      const nowMs = clock.now();
      return {
        name,
        queued: queue.size,
        inFlight: dispatcher.inFlight,
        items: { ...calls.tally },
        abandonedRuns: dispatcher.abandonedRuns,
        latencyMs: calls.latencyMs.distribution(nowMs),
        ...statistics.snapshot(nowMs),
      };
    },

    subscribe: (listener: (record: BatchRecord) => void): (() => void) => {
      if (typeof listener !== "function") throw new TypeError(`subscribe needs a function, got ${describe(listener)}`);
      const own = (record: BatchRecord): void => listener(record);
      listeners.add(own);
      return () => void listeners.delete(own);
    },

    capacity: { maxBatchSize: settings.maxBatchSize, concurrency: settings.concurrency },

    [Symbol.asyncDispose]: (): Promise<void> => lifecycle.close(undefined),
  };

  lifecycle.begin(typeof run === "function" ? undefined : executor);
  const load = (): BatcherLoad => ({ queued: queue.size, inFlight: dispatcher.inFlight });
  return callable<In, Out>(call, methods, name, load) as unknown as Batcher<In, Result<Out>>;
}

/** The caller's own array, or the items of another iterable. */
function arrayOf<In>(items: Iterable<In>): ArrayLike<In> {
  if (Array.isArray(items)) return items as In[];
  if (typeof (items as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator] !== "function") {
    throw new TypeError(`many(items) and settle(items) need an iterable, got ${describe(items)}`);
  }
  return Array.from(items);
}
