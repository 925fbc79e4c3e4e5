import { callable } from "../../../core/wrap-batcher.ts";
import { arrayOf } from "../../../core/calls/lists.ts";
import { mapOver } from "../../../core/calls/map.ts";
import type { Batcher, BatcherPending } from "../../../core/contract/batcher.ts";
import type { CallOptions } from "../../../core/contract/options.ts";
import type { BatcherStats } from "../../../core/contract/stats.ts";
import type { Clock } from "../../../core/runtime/runtime.ts";
import { batcherChecks, checkCallOptions } from "../../../core/contract/settings.ts";
import type { BatchRecord } from "../../../policies/policy.ts";
import {
  check,
  checkCountOrInfinity,
  checkNotNegative,
  checkPositive,
  checkText,
  closeChecks,
  withOptions,
  type Closing,
} from "../../../shared/checks.ts";
import type { RecordedSettings } from "../../../shared/recorded-settings.ts";
import type { NatsDetailedResult } from "../wire/detailed-result.ts";
import type { StartOptions } from "./call.ts";
import { PendingCalls, type AnswerObserver } from "./pending-calls.ts";
import { turnsOf, WaitingItem, withTurn } from "./turns.ts";
import { laneFigures, type LaneFigures } from "../queue/lane-figures.ts";
import { queueSettings, type NatsQueueOptions } from "../queue/options.ts";
import type { WorkerInfo } from "../queue/worker-registry.ts";

/** Options of `natsFrontEnd`. */
export interface NatsFrontEndOptions<In = never> extends NatsQueueOptions {
  /**
   * The caller's whole wait, in milliseconds; at most `maxAgeMs`.
   * @default 30000, or `maxAgeMs` if that is less
   * @see maxAgeMs
   */
  readonly timeoutMs?: number | undefined;
  /**
   * While the connection to NATS is down, or nothing leads the queue in its cluster, for no longer than this, calls are held, and
   * published when the queue is there again. In milliseconds; with 0 they fail at once with `UNAVAILABLE`.
   * @default 1000
   */
  readonly holdMs?: number | undefined;
  /**
   * The share of its timeout that a call may be expected to take, > 0 and <= 1, judged by the items that waited in the queue a
   * second ago and by the workers' speed. A call with a longer expected latency is refused at once with `QUEUE_FULL`.
   * @default none: no call is refused for its expected latency
   */
  readonly refuseLate?: number | undefined;
  /**
   * Most items in a batch of the workers, for the fill rate in `stats()`.
   * @default 32
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default the `queue`
   */
  readonly name?: string | undefined;
  /**
   * Whose item it is, as for a batcher. The tenants of this front end take turns before its items are published: a few batches'
   * worth at a time, and no more than `maxQueueSize` wait. Front ends do not know of one another's tenants.
   * @default none: items are published as they come
   * @see shareOf
   */
  readonly fairKey?: ((item: In) => unknown) | undefined;
  /**
   * Share of a tenant in the turns while others wait too; finite, > 0. Called with its key for each item, on arrival.
   * @default 1 for each tenant
   * @see fairKey
   */
  readonly shareOf?: ((key: unknown) => number) | undefined;
}

/**
 * A batcher whose batches run on whatever workers there are. A call's errors are those of a batcher, and `NatsQueueError`
 * (`UNAVAILABLE`, `DEAD_LETTERED`). The `tag` of a call travels with its item where it is a text, such as a W3C trace context:
 * with `natsWorker` it is among the `tags` of its batcher's records. `alone` is refused.
 *
 * `pending.queued` and `stats().queued` count every call without a result; the batches in `stats()` and in records are those that
 * its items ran in, as their replies tell. Nothing is held here: `flush` is `drain`. `map` ends with `QUEUE_FULL` where others
 * have filled the queue.
 */
export interface NatsFrontEnd<In, Out> extends Batcher<In, Out> {
  /** As a call, with the size of the batch and the times. */
  detailed(item: In, options?: CallOptions): Promise<NatsDetailedResult<Out>>;
  /**
   * Several items, admitted whole or not at all; outcomes in order.
   * @throws {BatcherError} `QUEUE_FULL` when not all of them find room; those that did are cancelled.
   */
  settleDetailed(items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<NatsDetailedResult<Out>>[]>;
  /** Resolves when the queue is there and a worker serves it; rejects when the connection is closed before. */
  ready(): Promise<void>;
  /** The connection is up. */
  readonly isConnected: boolean;
  /**
   * Why the queue has taken no items for a second, or for `holdMs` if calls are held: the connection is down, no server leads
   * it, or NATS refuses items or confirms none. Undefined if it takes them.
   */
  readonly unavailableReason: string | undefined;
  /** Workers, by their heartbeats of the last seconds, that take this front end's items: all of one version. */
  workers(): readonly WorkerInfo[];
  /**
   * Workers, by their heartbeats of the last seconds, of another version or another model: they take none of its items.
   */
  otherWorkers(): readonly WorkerInfo[];
  /** How long `items` will take the workers there are, in milliseconds; undefined until it is known. */
  drainMs(items: number): number | undefined;
  /** The lanes as the NATS server counts them. */
  figures(): Promise<readonly LaneFigures[]>;
  /** The lanes as they were counted about a second ago; none before the first count. */
  readonly lastFigures: readonly LaneFigures[];
  /** Replies that came for calls that had ended, and items taken for dead letters here. */
  readonly counts: { readonly lateReplies: number; readonly deadLetters: number; readonly republished: number };
}

/** What a recorder of its calls looks at. */
export interface FrontEndInside {
  readonly clock: Clock;
  readonly observers: AnswerObserver[];
  readonly counts: () => Pick<BatcherStats, "items" | "lanes">;
  readonly workers: () => readonly WorkerInfo[];
  /** Those that are not the workers'. */
  readonly settings: Partial<RecordedSettings>;
}

const frontEndChecks = {
  timeoutMs: checkPositive,
  holdMs: checkNotNegative,
  maxBatchSize: checkCountOrInfinity,
  refuseLate: batcherChecks.refuseLate,
  name: checkText,
  fairKey: batcherChecks.fairKey,
  shareOf: batcherChecks.shareOf,
};

/**
 * The side of a NATS queue where callers are: publishes single items, hands every caller its own result. At-least-once:
 * an item may run twice after a fault, its caller is answered once.
 * @experimental It may change in any minor version.
 */
export function natsFrontEnd<In, Out>(options: NatsFrontEndOptions<In>): NatsFrontEnd<In, Out> {
  const settings = queueSettings(options, frontEndChecks);
  const {
    timeoutMs = Math.min(30_000, settings.maxAgeMs),
    name = settings.queue,
    maxBatchSize = 32,
    holdMs = 1000,
    fairKey,
    shareOf,
  } = options;
  checkTimeout(timeoutMs, settings.maxAgeMs);
  if (shareOf !== undefined && fairKey === undefined) throw new RangeError("shareOf needs fairKey");
  const calls = new PendingCalls(settings, { name, maxBatchSize, holdMs, refuseLate: options.refuseLate });
  const publish = (item: unknown, terms: StartOptions, turnMs?: number): Promise<NatsDetailedResult<unknown>> =>
    calls.start(item, terms, turnMs).result;
  const { clock, maxQueueSize } = settings;
  const turns = fairKey && turnsOf({ name, clock, maxQueueSize, fairKey, shareOf, routing: calls.routing, publish });
  const waiting = (item: unknown, terms: StartOptions): WaitingItem => new WaitingItem(item, terms, clock.now());
  const queued = (): number => calls.size + (turns?.pending.queued ?? 0);
  const bulk = (): number => calls.bulk + (turns?.pending.bulk ?? 0);
  const termsOf = (given: CallOptions | number | null | undefined): StartOptions =>
    typeof given === "object" && given !== null ? { ...given, timeoutMs: given.timeoutMs ?? timeoutMs } : { timeoutMs };

  const detailed = (item: In, given?: CallOptions | number): Promise<NatsDetailedResult<Out>> => {
    try {
      const terms = termsOf(given);
      calls.refuseLate(1, terms);
      const result =
        turns === undefined ? publish(item, terms) : turns.detailed(waiting(item, terms), terms).then(withTurn);
      return result as Promise<NatsDetailedResult<Out>>;
    } catch (error) {
      return Promise.reject(error);
    }
  };

  const settleDetailed = async (
    items: Iterable<In>,
    given?: CallOptions,
  ): Promise<PromiseSettledResult<NatsDetailedResult<Out>>[]> => {
    const terms = termsOf(given);
    const array = Array.from(arrayOf(items));
    if (array.length > 0) calls.refuseLate(array.length, terms);
    if (turns !== undefined) {
      const settled = await turns.settleDetailed(array.map((item) => waiting(item, terms)), terms); // prettier-ignore
      return settled.map((outcome) =>
        outcome.status === "fulfilled" ? { status: "fulfilled", value: withTurn(outcome.value) } : outcome,
      ) as PromiseSettledResult<NatsDetailedResult<Out>>[];
    }
    const started = array.map((item) => calls.start(item, terms));
    const outcomes = Promise.allSettled(started.map(({ result }) => result));
    const refusal = (await Promise.all(started.map(({ admission }) => admission))).find(Boolean);
    if (refusal !== undefined) {
      for (const call of started) call.withdraw(refusal);
      await outcomes;
      throw refusal;
    }
    return (await outcomes) as PromiseSettledResult<NatsDetailedResult<Out>>[];
  };

  const call = (item: In, given?: CallOptions | number): Promise<Out> =>
    detailed(item, given).then(({ value }) => value);
  let closing: Promise<void> | undefined;
  const close = withOptions(closeChecks, ({ graceMs = Infinity }: Closing): Promise<void> => {
    if (turns === undefined) return calls.close(graceMs);
    const hasEnded = turns.close({ graceMs });
    return (closing ??= hasEnded.then(() => calls.close(0)));
  });
  const drain = withOptions({}, async () => {
    await turns?.drain();
    await calls.drain();
  });

  const methods = {
    detailed,
    settleDetailed,
    many: async (items: Iterable<In>, given?: CallOptions): Promise<Out[]> =>
      Promise.all(Array.from(arrayOf(items), (item) => call(item, given))),
    settle: async (items: Iterable<In>, given?: CallOptions): Promise<PromiseSettledResult<Out>[]> =>
      (await settleDetailed(items, given)).map((outcome) =>
        outcome.status === "fulfilled" ? { status: "fulfilled", value: outcome.value.value } : outcome,
      ),
    map: (items: Iterable<In> | AsyncIterable<In>, given: CallOptions = {}) => {
      checkCallOptions(given);
      return mapOver<In, Out>(items, given, {
        window: Math.min(maxQueueSize, maxBatchSize * (calls.routing.slots + 1)),
        aborts: calls.signals,
        hasRoom: () => true,
        call,
      });
    },
    flush: drain,
    drain,
    close,
    ready: () => calls.ready(),
    stats: () => {
      const nowMs = clock.now();
      const stats = calls.batches.stats(queued(), { queued: calls.bulk, oldestAtMs: calls.oldestBulkAtMs }, nowMs);
      if (turns === undefined) return stats;
      const { items, latencyMs, lanes } = turns.stats();
      const oldestMs = Math.max(lanes?.bulk.oldestMs ?? 0, nowMs - calls.oldestBulkAtMs);
      const withPublished = lanes && {
        live: { ...lanes.live, queued: queued() - bulk() },
        bulk: { ...lanes.bulk, queued: bulk(), oldestMs },
      };
      return { ...stats, items, latencyMs, lanes: withPublished };
    },
    subscribe: (listener: (record: BatchRecord) => void) => calls.batches.subscribers.add(listener),
    capacity: { maxBatchSize, concurrency: Infinity },
    [Symbol.asyncDispose]: () => close(),
    workers: () => calls.routing.workers,
    otherWorkers: () => calls.routing.others,
    drainMs: (items: number) => calls.routing.drainMs(items),
    figures: () => laneFigures(settings),
  };
  const pending = (): BatcherPending => ({ queued: queued(), bulk: bulk(), inFlight: 0 });
  const inside: FrontEndInside = {
    clock,
    observers: calls.observers,
    counts: () => methods.stats(),
    workers: methods.workers,
    settings: { maxQueueSize, timeoutMs, refuseLate: options.refuseLate },
  };
  const frontEnd = callable<In, Out>(call, methods, name, pending, undefined, inside);
  return Object.defineProperties(frontEnd, {
    isConnected: { get: () => calls.isConnected },
    unavailableReason: { get: () => calls.unavailableReason },
    lastFigures: { get: () => calls.load.lanes },
    counts: { get: () => calls.counts },
  }) as unknown as NatsFrontEnd<In, Out>;
}

function checkTimeout(timeoutMs: number, maxAgeMs: number): void {
  check(timeoutMs <= maxAgeMs, "timeoutMs", `at most maxAgeMs (${maxAgeMs})`, timeoutMs);
}
