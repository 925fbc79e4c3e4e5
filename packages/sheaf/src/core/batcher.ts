import type { BatchRecord, Policy } from "../policies/policy.ts";
import { Admission, type Terms } from "./admission.ts";
import { BusyWatch } from "./busy.ts";
import { Calls } from "./calls.ts";
import type { Chunk, Settler } from "./chunk.ts";
import { systemClock } from "./clock.ts";
import { Dispatcher } from "./dispatch.ts";
import { Epochs } from "./epoch.ts";
import { BatcherError } from "./errors.ts";
import type { BatchFunction, Executor } from "./executor.ts";
import { manyList, settleList, type List } from "./list.ts";
import { mapOver } from "./map.ts";
import type { BatcherOptions, CallOptions } from "./options.ts";
import { NextBatch } from "./next-batch.ts";
import { OrderKeys } from "./order.ts";
import { Queue } from "./queue.ts";
import { RateLimiter } from "./rate-limit.ts";
import { newAbortController, warn, type AbortSignalLike } from "./runtime.ts";
import { Scheduler } from "./scheduler.ts";
import { checkCallOptions, checkNotNegative, laneOf, settingsOf, show } from "./settings.ts";
import { Statistics, type BatcherStats } from "./stats.ts";

/** What a caller gets: an `Error` in a slot rejects, so error classes drop out. Plain objects that look like one stay. */
export type Result<Out> = Out extends Error ? ("stack" extends keyof Out ? never : Out) : Out;

/** Callable as `batcher(item)`. Its methods can be destructured. */
export interface Batcher<In, Out> {
  /**
   * One item in, its own result out. A second argument that is not an object is ignored, so that `items.map(batcher)`
   * works.
   * @throws {BatcherError} `QUEUE_FULL`, `CLOSED`, `TIMEOUT`, `ITEM_TOO_LARGE`, or what became of its batch.
   */
  (item: In, options?: CallOptions | number): Promise<Out>;
  readonly name: string;
  /** Several items, results in order; rejects with the first error, the other items run on. `[]` gives `[]`. */
  many(items: Iterable<In>, options?: CallOptions): Promise<Out[]>;
  /** Several items, every outcome in order; never rejects for an item. */
  settle(items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<Out>[]>;
  /**
   * Any number of items in bounded memory: pulls only while there is room, yields results in order, ends on the first
   * error and closes its source. `timeoutMs` counts for each item from when it was pulled.
   */
  map(items: Iterable<In> | AsyncIterable<In>, options?: CallOptions): AsyncGenerator<Out, void, void>;
  /** What waits now goes without further holding, as slots come free; resolves when those have settled. */
  flush(): Promise<void>;
  /** Flushes; resolves when everything accepted before it has settled. */
  drain(): Promise<void>;
  /**
   * Takes no more calls (`CLOSED`), finishes what is in, then closes the executor. After `graceMs` (default none) what
   * is left gets `CLOSED`. Always the same promise.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  /** Resolves when the executor can run batches; rejects with the reason it never will. */
  ready(): Promise<void>;
  stats(): BatcherStats;
  /** Calls back once per batch; returns a function that ends it. A listener that throws is reported once. */
  subscribe(listener: (record: BatchRecord) => void): () => void;
  [Symbol.asyncDispose](): Promise<void>;
}

// One executor for all promises, so that no closure is made per call: it puts `resolve` where the next entry's settler
// stands. A variable for the function itself would be a pointer from old to new memory at every call, which costs the
// garbage collector more than the rest of a call.
let target: Chunk;
const capture = (resolve: (value: never) => void): void => {
  target.settlers[target.count] = resolve as Settler;
};

/** As `createBatcher`, with the default policy as an argument: the core itself prefers none. */
export function batcherWith<In, Out>(
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
  const calls = new Calls<In>(
    () => clock.now(),
    name,
    order,
    () => scheduler.wake(),
  );
  const queue = new Queue<In>(settings.maxBatchSize, epochs, calls.watch, order, settings.groupKey !== undefined);
  calls.attach(queue);
  const next = new NextBatch<In>(limits, queue, order);
  const admission = new Admission<In, Out>(settings, queue, calls, epochs, order);
  // On a clock of its own, as in a simulation, a batcher says nothing about this process.
  const busy = clock === systemClock ? new BusyWatch(settings.concurrency) : undefined;
  const statistics = new Statistics(limits, settings.cost, busy);
  const listeners = new Set<(record: BatchRecord) => void>();
  const dispatcher = new Dispatcher<In, Out>(executor, settings, calls, order, {
    recorded: (record, nowMs) => {
      statistics.observe(record);
      scheduler.observe(record, nowMs);
      for (const listener of listeners) notify(listener, record);
    },
    failed: (error) => limiter.observe(error, clock.now()),
    paused: (retryAfterMs) => limiter.observe({ retryAfterMs }, clock.now()),
    retried: (items, weight) => limiter.spend(clock.now(), items, weight),
    ranAgain: (items, weight) => {
      statistics.ranAgain();
      limiter.spend(clock.now(), items, weight);
    },
    freed: (nowMs) => scheduler.freed(nowMs),
  });
  const scheduler = new Scheduler<In, Out>({ settings, queue, next, calls, admission, dispatcher, limiter });

  const line = settings.groupKey === undefined ? queue.groupOf(undefined).line(1) : undefined;
  // No key, weight, deadline or signal: nothing to ask and nothing to watch.
  const isPlain =
    line !== undefined &&
    settings.weigh === undefined &&
    settings.orderKey === undefined &&
    settings.dedupeKey === undefined &&
    settings.timeoutMs === undefined;
  /** Set once it takes no more calls: what they get. */
  let refusal: { readonly error: unknown } | undefined;
  let closing: Promise<void> | undefined;
  let reportedListener = false;

  const call = (item: In, callOptions?: unknown): Promise<Out> => {
    if (isPlain && (typeof callOptions !== "object" || callOptions === null) && refusal === undefined) {
      if (admission.hasRoom()) {
        const chunk = queue.tail(line, epochs.current);
        if (target !== chunk) target = chunk as unknown as Chunk;
        const promise = new Promise<Out>(capture);
        scheduler.arriving(1);
        queue.fill(chunk, line, item, scheduler.stampMs);
        return promise;
      }
    }
    return enter(item, callOptions as CallOptions | undefined, settings.onQueueFull === "wait");
  };

  const enter = (item: In, callOptions: CallOptions | number | null | undefined, mayWait: boolean): Promise<Out> =>
    new Promise<Out>((resolve) => {
      // What termsOf throws rejects the promise, as a throw in an executor does.
      admission.enter(item, resolve as Settler, termsOf(callOptions, 1), mayWait);
    });

  /** @throws what the call must be rejected with when it may not even try. */
  const termsOf = (callOptions: CallOptions | number | null | undefined, items: number): Terms => {
    const isObject = typeof callOptions === "object" && callOptions !== null;
    const { signal, timeoutMs, priority, tag } = isObject ? callOptions : {};
    if (refusal !== undefined) {
      calls.tally.rejected += items;
      throw refusal.error;
    }
    if (isObject) checkCallOptions(callOptions);
    const watched = signal as unknown as AbortSignalLike | undefined;
    if (watched?.aborted === true) {
      calls.tally.aborted += items;
      throw watched.reason;
    }
    scheduler.arriving(items);
    const arrivedAtMs = scheduler.stampMs;
    const deadlineMs = arrivedAtMs + (timeoutMs ?? settings.timeoutMs ?? Infinity);
    return { lane: laneOf(priority), signal: watched, deadlineMs, arrivedAtMs, tag };
  };

  const enterList = <T>(
    items: Iterable<In>,
    callOptions: CallOptions | undefined,
    listOf: (size: number, resolve: (value: T) => void, reject: (error: unknown) => void) => List,
    empty: T,
  ): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const array = arrayOf(items);
      if (array.length === 0) return resolve(empty);
      const terms = termsOf(callOptions, array.length);
      const list = listOf(array.length, resolve, reject);
      // Throws before anything is enqueued, which refuses the list whole.
      admission.enterList(array, (index) => list.entry(index), terms, settings.onQueueFull === "wait");
    });

  const notify = (listener: (record: BatchRecord) => void, record: BatchRecord): void => {
    try {
      listener(record);
    } catch (error) {
      if (!reportedListener) warn(`${name}: a subscriber threw; its further errors are not reported.`, error);
      reportedListener = true;
    }
  };

  const closedError = (message: string): BatcherError => new BatcherError("CLOSED", `${name}: ${message}`);

  const withdrawAll = (error: unknown): void => {
    admission.dismissAll(error);
    queue.everyChunk((chunk) => {
      for (let i = 0; i < chunk.count; i++) {
        while (chunk.settlers[i] !== undefined) calls.withdraw(chunk, i, error, "rejected");
      }
    });
  };

  const cutOff = (graceMs: number): void => {
    const error = closedError(`closed; the call was cut off after ${graceMs} ms (graceMs).`);
    withdrawAll(error);
    dispatcher.cutOff(error);
  };

  const closeSignal = settings.signal as unknown as AbortSignalLike | undefined;
  const closeOnAbort = (): void => void methods.close().catch(() => undefined);

  const finish = async (): Promise<void> => {
    await drainAll();
    scheduler.stop();
    closeSignal?.removeEventListener("abort", closeOnAbort);
    await executor.close();
  };

  const drainAll = (): Promise<void> => {
    const epoch = epochs.seal("drain");
    queue.release();
    scheduler.wake();
    return epochs.settlement(epoch, true);
  };

  const methods = {
    many: (items: Iterable<In>, callOptions?: CallOptions) => enterList<Out[]>(items, callOptions, manyList, []),

    settle: (items: Iterable<In>, callOptions?: CallOptions) =>
      enterList<PromiseSettledResult<Out>[]>(items, callOptions, settleList, []),

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
          else calls.watch.aborts.add(watched, passOn);
        });
      };
      return mapOver<In, Out>(items, {
        window: Math.max(1, Math.min(admission.maxQueueSize, settings.maxBatchSize * (settings.concurrency + 1), 4096)),
        begin,
        hasRoom: () => admission.hasRoom(),
        call: (item) => enter(item, { ...callOptions, signal: controller.signal }, true),
        withdraw: () => {
          if (watched !== undefined) calls.watch.aborts.remove(watched, passOn);
          controller.abort(closedError("map() ended before this item had run."));
        },
      });
    },

    flush: (): Promise<void> => {
      if (queue.size === 0 && admission.door.waiters === 0) return Promise.resolve();
      const epoch = epochs.separate("flush");
      queue.relabel(epoch);
      admission.relabelDoor(epoch);
      scheduler.wake();
      return epochs.settlement(epoch, false);
    },

    drain: drainAll,

    close: ({ graceMs }: { readonly graceMs?: number | undefined } = {}): Promise<void> => {
      try {
        if (graceMs !== undefined) checkNotNegative("graceMs", graceMs);
      } catch (error) {
        return Promise.reject(error);
      }
      refusal ??= { error: closedError("closed; it takes no more calls.") };
      closing ??= finish();
      if (graceMs !== undefined && graceMs !== Infinity) {
        const cancel = clock.after(graceMs, () => cutOff(graceMs));
        closing.then(cancel, cancel);
      }
      return closing;
    },

    ready: (): Promise<void> => readiness,

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
      if (typeof listener !== "function") throw new TypeError(`subscribe needs a function, got ${show(listener)}`);
      const own = (record: BatchRecord): void => listener(record);
      listeners.add(own);
      return () => void listeners.delete(own);
    },

    [Symbol.asyncDispose]: (): Promise<void> => methods.close(),
  };

  const open = (): void => {
    scheduler.open = true;
    scheduler.wake();
  };
  const break_ = (error: unknown): void => {
    refusal ??= { error };
    withdrawAll(error);
  };
  let readiness: Promise<void>;
  if (typeof run === "function") {
    readiness = Promise.resolve();
    scheduler.open = true;
  } else {
    readiness = (async () => executor.ready())();
    readiness.then(open, break_);
  }

  if (closeSignal?.aborted === true) closeOnAbort();
  else closeSignal?.addEventListener("abort", closeOnAbort, { once: true });

  Object.defineProperty(call, "name", { value: name });
  return Object.assign(call, methods) as unknown as Batcher<In, Result<Out>>;
}

function executorOf<In, Out>(run: BatchFunction<In, Out>, slots: number): Executor<In, Out> {
  return {
    slots,
    ready: () => Promise.resolve(),
    // What a batch function throws or returns at once is as good as a promise to the one who awaits it.
    run: run as Executor<In, Out>["run"],
    close: () => Promise.resolve(),
  };
}

/** The caller's own array, or the items of another iterable. */
function arrayOf<In>(items: Iterable<In>): ArrayLike<In> {
  if (Array.isArray(items)) return items as In[];
  if (typeof (items as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator] !== "function") {
    throw new TypeError(`many(items) and settle(items) need an iterable, got ${show(items)}`);
  }
  return Array.from(items);
}
