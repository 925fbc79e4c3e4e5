import { callsOf } from "./calls/calls.ts";
import { lifecycleOf } from "./calls/lifecycle.ts";
import { listsOf } from "./calls/lists.ts";
import type { Batcher, Result } from "./contract/batcher.ts";
import type { BatchFunction, Executor } from "./contract/executor.ts";
import { firstConcurrency, type BatcherOptions } from "./contract/options.ts";
import { capacityOf, settingsOf, type Settings } from "./contract/settings.ts";
import { Background } from "./pick/background.ts";
import { Decisions } from "./dispatch/decision.ts";
import { Dispatcher, type Learner } from "./dispatch/dispatcher.ts";
import type { BatchRun } from "./dispatch/run.ts";
import { ConcurrencyLearner } from "./dispatch/concurrency-learner.ts";
import { LearnedConcurrency, mostConcurrency } from "./dispatch/learned-concurrency.ts";
import { NextBatch } from "./pick/next-batch.ts";
import { Throttle } from "./dispatch/throttle.ts";
import { Scheduler } from "./dispatch/scheduler.ts";
import { defaultStallWarningMs } from "./dispatch/stall-watch.ts";
import { StandingOverload } from "./pick/standing-overload.ts";
import { queueBound } from "./measure/expected-latency.ts";
import { LearnedCost } from "./measure/learned-cost.ts";
import { snapshotOf } from "./measure/snapshot.ts";
import { Statistics } from "./measure/stats.ts";
import { Subscribers } from "./measure/subscribers.ts";
import { Admission } from "./queue/admission.ts";
import { Entrance } from "./queue/entrance.ts";
import { lateGate } from "./queue/late-gate.ts";
import { Queue } from "./queue/queue.ts";
import { Settlement } from "./queue/settlement.ts";
import { callable, type Inside } from "./wrap-batcher.ts";
import type { Policy } from "../policies/policy.ts";
import { closeChecks, withOptions, type Closing } from "../shared/checks.ts";

/**
 * Like `createBatcher`, with the default policy as an argument: the core itself has none. `stallWarningMs` is Infinity for
 * a batch function that is known to end without calling its batcher, however long it takes. `startConcurrency`: where the number of
 * batches in flight is learned, the first.
 */
export function assembleBatcher<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out>,
  defaultPolicy: () => Policy,
  stallWarningMs: number = defaultStallWarningMs,
  startConcurrency: number = firstConcurrency,
): Batcher<In, Result<Out>> {
  const learned =
    typeof run === "function" && options?.concurrency === undefined
      ? new LearnedConcurrency(startConcurrency)
      : undefined;
  const fixedBy = typeof run === "function" || options?.concurrency !== undefined ? "option" : "slots";
  const settings = settingsOf(run, options, defaultPolicy, learned);
  const { clock, maxBatchSize, name, weigh } = settings;
  const executor = typeof run === "function" ? undefined : run;
  // A batch function is called as a function, so that `this` is undefined in it.
  const batchRun: BatchRun<In> = typeof run === "function" ? run : (items, handle) => run.run(items, handle);

  const queue = new Queue<In>(settings);
  const settlement = new Settlement<In>(clock, queue);
  const weights = weigh && (settings.batchWeight === "apart" ? "apart" : "learned");
  const cost = new LearnedCost({ weights, contention: learned?.contention });
  const admission = new Admission<In>(queue);
  const entrance = new Entrance<In, Out>(settings, admission, queue, cost);

  const throttle = new Throttle(settings);
  const dispatcher = new Dispatcher<In, Out>(batchRun, executor, settings, settlement, queue, throttle, cost);
  const overload =
    settings.overloadOrder === "arrival" ? undefined : new StandingOverload<In>(maxBatchSize, queue, cost);
  const statistics = new Statistics(settings, cost, settlement, weigh && throttle);
  const background = new Background<In>(settings, queue, cost);
  const next = new NextBatch<In>(settings, queue, overload, background);
  const pace = learned && new ConcurrencyLearner(learned, { dispatcher, queue, throttle, overload, settings });
  const parts = {
    settings,
    executor,
    queue,
    admission,
    cost,
    background,
    overload,
    next,
    throttle,
    dispatcher,
    statistics,
    pace,
  };
  const decisions = new Decisions<In, Out>(parts);
  const scheduler = new Scheduler<In, Out>(parts, decisions, stallWarningMs);
  for (const part of [queue.cancellation, throttle, dispatcher]) part.scheduler = scheduler;

  const subscribers = new Subscribers(name);
  if (settings.refuseLate !== undefined)
    entrance.gates.push(lateGate(settings, admission, queue, cost, dispatcher, overload));
  if (pace !== undefined) dispatcher.learners.push(pace);
  dispatcher.learners.push(cost);
  if (settings.maxQueueSize === "auto") dispatcher.learners.push(boundOf(settings, queue, cost));
  // In this order: a policy and a subscriber see what the batch has taught.
  dispatcher.observers.push(decisions, statistics);

  const isReady = executor && warmedUp(executor, cost);
  const lifecycle = lifecycleOf(settings, queue, admission, dispatcher, scheduler, executor, isReady);
  const calls = callsOf(settings, queue, admission, entrance, scheduler);
  const { settleDetailed, many, settle, map } = listsOf(settings, queue, admission, entrance, scheduler, calls);
  // One by one: a spread takes as long as the rest of making a batcher.
  const methods = {
    detailed: calls.detailed,
    settleDetailed,
    many,
    settle,
    map,
    flush: lifecycle.flush,
    drain: withOptions({}, lifecycle.drain),
    close: withOptions(closeChecks, ({ graceMs }: Closing) => lifecycle.close(graceMs)),
    ready: lifecycle.ready,
    stats: () => {
      const nowMs = clock.now();
      const counts = {
        name,
        queued: queue.size,
        inFlight: dispatcher.inFlight,
        concurrency: { now: settings.slots.limit, cause: learned?.cause ?? fixedBy },
        bisectRuns: dispatcher.bisectRuns,
        abandonedRuns: dispatcher.abandonedRuns,
        hungRuns: dispatcher.abandonedNow,
        rateLimit: settings.rateLimit === undefined ? null : throttle.seat!.stats(nowMs),
        pause: throttle.view(nowMs),
        tenants: queue.tenants?.stats() ?? null,
      };
      return snapshotOf(statistics, nowMs, counts, overload?.view(nowMs));
    },
    subscribe: (listener: Parameters<Subscribers["add"]>[0]) => {
      if (!dispatcher.observers.includes(subscribers)) dispatcher.observers.push(subscribers);
      return subscribers.add(listener);
    },
    capacity: {
      maxBatchSize,
      concurrency: learned === undefined ? settings.slots.limit : mostConcurrency,
    },
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };

  const load = () => ({ queued: queue.size, bulk: queue.inBulkRoom, inFlight: dispatcher.inFlight });
  const inside = { settings, queue, observers: dispatcher.observers } as unknown as Inside;
  return callable<In, Out>(calls.call, methods, name, load, calls.checkRoom, inside) as unknown as Batcher<
    In,
    Result<Out>
  >;
}

async function warmedUp(executor: Pick<Executor<never, unknown>, "ready">, cost: LearnedCost): Promise<void> {
  cost.warmedUp((await executor.ready()) ?? []);
}

/** Follows what runs take with `maxQueueSize: "auto"`. */
const boundOf = <In, Out>(settings: Settings<In, Out>, queue: Queue<In>, cost: LearnedCost): Learner => ({
  learn: () => {
    const bound = queueBound(cost, capacityOf(settings), settings.timeoutMs!);
    if (bound > 0) queue.maxSize = bound;
  },
});
