import type { CallOptions } from "../../../core/contract/options.ts";
import type { BatchRecord } from "../../../policies/policy.ts";
import { check, checkNotNegative, checkCountOrInfinity, checkPositive, checkText } from "../../../shared/checks.ts";
import type { NatsDetailedResult } from "../wire/answer.ts";
import { PendingCalls } from "./pending-calls.ts";
import type { LaneFigures } from "../queue/lane-figures.ts";
import { queueSettings, type NatsQueueOptions } from "../queue/options.ts";
import type { WorkerInfo } from "../queue/worker-registry.ts";
import type { BatcherStats } from "../../../core/contract/stats.ts";

/** Options of `natsFrontEnd`. */
export interface NatsFrontEndOptions extends NatsQueueOptions {
  /**
   * The caller's whole wait, in milliseconds; at most `maxAgeMs`.
   * @default 30000, or `maxAgeMs` if that is less
   * @see maxAgeMs
   */
  readonly timeoutMs?: number | undefined;
  /**
   * While the connection to NATS is down for no longer than this, calls are held, and published when the queue is
   * there again. In milliseconds; with 0 they fail at once with `UNAVAILABLE`.
   * @default 1000
   */
  readonly holdMs?: number | undefined;
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
}

/** Options of one call. */
export interface NatsCallOptions extends CallOptions {
  /**
   * W3C trace context for the worker: with `natsWorker` it is among the `tags` of its batcher's records.
   * @default none
   */
  readonly traceparent?: string | undefined;
}

/** Callable as a batcher is; the batches run on whatever workers there are. */
export interface NatsFrontEnd<In, Out> {
  /**
   * One item in, its own result out.
   * @throws {BatcherError} `QUEUE_FULL`, `TIMEOUT`, `ITEM_TOO_LARGE`, `CLOSED`, or what became of it at a worker.
   * @throws {NatsQueueError} `UNAVAILABLE`, `DEAD_LETTERED`.
   */
  (item: In, options?: NatsCallOptions | number): Promise<Out>;
  readonly name: string;
  /** As a call, with the size of the batch and the times. */
  detailed(item: In, options?: NatsCallOptions): Promise<NatsDetailedResult<Out>>;
  /**
   * Several items, admitted whole or not at all; outcomes in order.
   * @throws {BatcherError} `QUEUE_FULL` when not all of them find room; those that did are cancelled.
   */
  settleDetailed(
    items: readonly In[],
    options?: NatsCallOptions,
  ): Promise<PromiseSettledResult<NatsDetailedResult<Out>>[]>;
  /** Several items, results in order; rejects with the first error, the other items run on. */
  many(items: Iterable<In>, options?: NatsCallOptions): Promise<Out[]>;
  /** Resolves when the queue is there and a worker serves it. */
  ready(): Promise<void>;
  /** The connection is up. */
  readonly isConnected: boolean;
  /** It takes calls: it is connected, or has been down for less than `holdMs`. */
  readonly isTaking: boolean;
  /** Why the queue cannot be used, in the server's words; undefined where it can. */
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
  /** Batches are those that this front end's items rode in; `queued` counts all that has no answer yet. */
  stats(): BatcherStats;
  subscribe(listener: (record: BatchRecord) => void): () => void;
  /** Replies that came for calls that had ended, and items taken for dead letters here. */
  readonly counts: { readonly lateReplies: number; readonly deadLetters: number; readonly republished: number };
  /** Takes no more calls and waits for open ones; after `graceMs` the rest gets `CLOSED`. */
  close(options?: {
    /**
     * Time for accepted calls to finish, in milliseconds.
     * @default none: as long as they take
     */
    readonly graceMs?: number | undefined;
  }): Promise<void>;
}

const frontEndChecks = {
  timeoutMs: checkPositive,
  holdMs: checkNotNegative,
  maxBatchSize: checkCountOrInfinity,
  name: checkText,
};

/**
 * The side of a NATS queue where callers are: publishes single items, hands every caller its own result. At-least-once:
 * an item may run twice after a fault, its caller is answered once.
 */
export function natsFrontEnd<In, Out>(options: NatsFrontEndOptions): NatsFrontEnd<In, Out> {
  const settings = queueSettings(options, frontEndChecks);
  const {
    timeoutMs = Math.min(30_000, settings.maxAgeMs),
    name = settings.queue,
    maxBatchSize = 32,
    holdMs = 1000,
  } = options;
  checkTimeout(timeoutMs, settings.maxAgeMs);
  const calls = new PendingCalls(settings, { name, maxBatchSize, holdMs });

  const detailed = (item: In, callOptions: NatsCallOptions = {}): Promise<NatsDetailedResult<Out>> => {
    const ms = callOptions.timeoutMs ?? timeoutMs;
    return calls.start(item, { ...callOptions, timeoutMs: ms }).answer as Promise<NatsDetailedResult<Out>>;
  };

  const settleDetailed = async (
    items: readonly In[],
    callOptions: NatsCallOptions = {},
  ): Promise<PromiseSettledResult<NatsDetailedResult<Out>>[]> => {
    const ms = callOptions.timeoutMs ?? timeoutMs;
    const started = items.map((item) => calls.start(item, { ...callOptions, timeoutMs: ms }));
    const outcomes = Promise.allSettled(started.map(({ answer }) => answer));
    const refusal = (await Promise.all(started.map(({ admission }) => admission))).find(Boolean);
    if (refusal !== undefined) {
      for (const call of started) call.withdraw(refusal);
      await outcomes;
      throw refusal;
    }
    return (await outcomes) as PromiseSettledResult<NatsDetailedResult<Out>>[];
  };

  const methods = {
    detailed,
    settleDetailed,
    many: async (items: Iterable<In>, callOptions?: NatsCallOptions): Promise<Out[]> => {
      const answers = await Promise.all([...items].map((item) => detailed(item, callOptions)));
      return answers.map(({ value }) => value);
    },
    ready: () => calls.ready(),
    workers: () => calls.routing.workers,
    otherWorkers: () => calls.routing.others,
    drainMs: (items: number) => calls.routing.drainMs(items),
    figures: () => calls.figures(),
    stats: () => calls.stats(),
    subscribe: (listener: (record: BatchRecord) => void) => calls.batches.subscribe(listener),
    close: ({ graceMs = Infinity }: { readonly graceMs?: number | undefined } = {}) => calls.close(graceMs),
  };
  const frontEnd = (item: In, callOptions?: NatsCallOptions | number): Promise<Out> =>
    detailed(item, typeof callOptions === "object" ? callOptions : {}).then(({ value }) => value);
  Object.defineProperty(frontEnd, "name", { value: name });
  Object.defineProperty(frontEnd, "isConnected", { get: () => calls.isConnected });
  Object.defineProperty(frontEnd, "isTaking", { get: () => calls.isTaking });
  Object.defineProperty(frontEnd, "unavailableReason", { get: () => calls.unavailableReason });
  Object.defineProperty(frontEnd, "counts", { get: () => calls.counts });
  return Object.assign(frontEnd, methods) as unknown as NatsFrontEnd<In, Out>;
}

function checkTimeout(timeoutMs: number, maxAgeMs: number): void {
  check(timeoutMs <= maxAgeMs, "timeoutMs", `at most maxAgeMs (${maxAgeMs})`, timeoutMs);
}
