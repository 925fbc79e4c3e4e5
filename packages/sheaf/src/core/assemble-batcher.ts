import { callable } from "./wrap-batcher.ts";
import { executorOf } from "./wrap-executor.ts";
import { callsOf } from "./calls/calls.ts";
import { Lifecycle } from "./calls/lifecycle.ts";
import { listsOf } from "./calls/lists.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { NextBatch } from "./dispatch/next-batch.ts";
import { putBack } from "./dispatch/put-back.ts";
import { LearnedConcurrency, mostConcurrency } from "./dispatch/learned-concurrency.ts";
import { Throttle, RateLimiter } from "./dispatch/rate-limit.ts";
import { Scheduler, type SchedulerParts } from "./dispatch/scheduler.ts";
import { defaultStallWarningMs } from "./dispatch/stall-watch.ts";
import { StandingOverload } from "./dispatch/standing-overload.ts";
import { Admission } from "./queue/admission.ts";
import { Entrance } from "./queue/entrance.ts";
import { lateGate, type Ahead } from "./queue/late-gate.ts";
import { Epochs } from "./queue/epoch.ts";
import { OrderKeys } from "./queue/order-keys.ts";
import { Queue } from "./queue/queue.ts";
import { Settlement } from "./queue/settlement.ts";
import { Demand } from "./measure/demand.ts";
import { CrowdedCost, LearnedCost } from "./measure/learned-cost.ts";
import { Statistics, Subscribers } from "./measure/stats.ts";
import { WeighedCost } from "./measure/weighed-cost.ts";
import type { Batcher, Result } from "./contract/batcher.ts";
import type { BatchFunction, Executor } from "./contract/executor.ts";
import { firstConcurrency, type BatcherOptions } from "./contract/options.ts";
import type { RateLimitSeat } from "./contract/rate-limit.ts";
import { isShared, limitsOf, settingsOf } from "./contract/settings.ts";
import type { Policy } from "../policies/policy.ts";

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
  const { clock, name } = settings;
  const executor: Executor<In, Out> = typeof run === "function" ? executorOf(run) : run;

  const { weigh, maxBatchWeight = Infinity } = settings;
  const throttle = new Throttle(
    clock,
    seatOf(settings.rateLimit, () => scheduler.look()),
  );
  const { maxBatchSize } = settings;
  const weightWithin = (limit: number): number =>
    weigh === undefined ? maxBatchWeight : Math.min(maxBatchWeight, limit);
  const limits = {
    maxBatchSize,
    get maxBatchWeight() {
      return weightWithin(throttle.maxWeight);
    },
    padded: settings.batchWeight === "padded",
  };
  const order = settings.orderKey === undefined ? undefined : new OrderKeys<In>();
  const epochs = new Epochs();
  const settlement = new Settlement<In>(clock, name, order, () => scheduler.wake());
  const queue = new Queue<In>(settings, epochs, settlement.cancellation, order);
  settlement.attach(queue);
  const next = new NextBatch<In>(limits, queue, order, settings.dedupe === "running");
  const alone = settings.weigh === undefined ? new LearnedCost() : new WeighedCost(settings.batchWeight === "apart");
  const cost = learned === undefined ? alone : new CrowdedCost(alone, learned.contention);
  const admission = new Admission<In, Out>(settings, queue, settlement, cost);
  const ahead: Ahead = {
    restsMs: (nowMs) => dispatcher.restsMs(cost, nowMs),
    overload: (nowMs) => overload?.view(nowMs) ?? null,
  };
  const gates = settings.refuseLate === undefined ? [] : [lateGate(settings, admission, queue, cost, ahead)];
  let made: Entrance<In, Out> | undefined;
  const entrance = (): Entrance<In, Out> =>
    (made ??= new Entrance<In, Out>({ settings, admission, queue, settlement, epochs, order, cost, gates }));
  const subscribers = new Subscribers(name);
  const dispatcher = new Dispatcher<In, Out>(executor, settings, settlement, order, queue, {
    failed: (error) => throttle.failed(error),
    began: () => {
      scheduler.began();
      return clock.now();
    },
    paused: (durationMs) => throttle.pause(durationMs),
    retried: (items, weight, isPart) => {
      const nowMs = clock.now();
      if (isPart) statistics.bisectRuns++;
      throttle.seat?.spend(nowMs, items, weight);
      return nowMs;
    },
    weighed: (difference) => throttle.seat?.correct(clock.now(), difference),
    putBack: (batch, group, batchId, error) =>
      putBack({ queue, settlement, entrance: entrance(), throttle, maxPauseMs: settings.maxPauseMs }, batch, {
        group,
        batchId,
        error,
      }),
    ranAgain: (items, weight, nowMs) => {
      statistics.bisectRuns++;
      throttle.seat?.spend(nowMs, items, weight);
    },
    answered: (chunk, index, result) => {
      if (result instanceof Error) throttle.failed(result);
      settlement.settle(chunk, index, result);
    },
    freed: (nowMs) => scheduler.freed(nowMs),
  });
  const overload =
    settings.overloadOrder === "arrival"
      ? undefined
      : new StandingOverload<In>(settings.maxBatchSize, queue, settlement, cost);
  const demand = new Demand();
  const arrived = (): number => queue.arrived + settlement.tally.rejected;
  const parts: SchedulerParts<In, Out> = {
    settings,
    queue,
    next,
    settlement,
    admission,
    entrance,
    gates,
    dispatcher,
    throttle,
    cost,
    epochs,
    overload,
    demand,
  };
  const scheduler = new Scheduler<In, Out>(parts, stallWarningMs);
  const lifecycle = new Lifecycle<In, Out>(parts, scheduler, executor);
  const fullest = {
    maxBatchSize,
    get maxBatchWeight() {
      return weightWithin(throttle.seat?.maxWeight ?? Infinity);
    },
  };
  const statistics = new Statistics(fullest, settings.price, cost);
  // In this order: a policy and a subscriber see what the batch has taught.
  if (learned !== undefined)
    dispatcher.learners.push((run, nowMs) => {
      const isTaken = dispatcher.inFlight >= learned.limit;
      learned.ended(run, nowMs, isTaken && queue.size > 0, isTaken && queue.size >= settings.maxBatchSize);
    });
  dispatcher.learners.push((run) => scheduler.learn(run));
  dispatcher.observers.push(
    (record, nowMs) => scheduler.observe(record, nowMs),
    (record) => statistics.observe(record),
    (_, nowMs) => demand.arrived(nowMs, arrived()),
    (record) => subscribers.notify(record),
  );

  const calls = callsOf(parts, scheduler);
  const { settleDetailed, many, settle, map } = listsOf(parts, scheduler, calls);
  // One by one: a spread takes as long as the rest of making a batcher.
  const methods = {
    detailed: calls.detailed,
    settleDetailed,
    many,
    settle,
    map,
    flush: () => lifecycle.flush(),
    drain: () => lifecycle.drain(),
    close: ({ graceMs }: { readonly graceMs?: number | undefined } = {}) => lifecycle.close(graceMs),
    ready: () => lifecycle.readiness,
    stats: () => {
      const nowMs = clock.now();
      const counts = {
        name,
        queued: queue.size,
        inFlight: dispatcher.inFlight,
        concurrency: { now: settings.concurrency, cause: learned?.cause ?? fixedBy },
        abandonedRuns: dispatcher.abandonedRuns,
        rateLimit: settings.rateLimit === undefined ? null : throttle.seat!.stats(nowMs),
        tenants: queue.tenants?.stats() ?? null,
      };
      const slotsNeeded = demand.slotsNeeded(nowMs, arrived(), cost, settings.maxBatchSize);
      return statistics.snapshot(nowMs, counts, settlement, overload?.view(nowMs), slotsNeeded);
    },
    subscribe: (listener: Parameters<Subscribers["add"]>[0]) => subscribers.add(listener),
    capacity: {
      maxBatchSize: settings.maxBatchSize,
      concurrency: learned === undefined ? settings.concurrency : mostConcurrency,
    },
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };

  lifecycle.begin(typeof run === "function" ? undefined : executor);
  const load = () => ({ queued: queue.size, inFlight: dispatcher.inFlight });
  return callable<In, Out>(calls.call, methods, name, load) as unknown as Batcher<In, Result<Out>>;
}

const seatOf = (limit: BatcherOptions<never, never>["rateLimit"], wake: () => void): RateLimitSeat | undefined => {
  if (isShared(limit)) return limit.join(wake);
  return limit === undefined ? undefined : new RateLimiter(limitsOf(limit));
};
