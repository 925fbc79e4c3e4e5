import { createBatcher } from "../../core/create-batcher.ts";
import type { Batcher } from "../../core/batcher.ts";
import { demuxOf } from "../../core/demux.ts";
import type { BatchFunction, Executor } from "../../core/executor.ts";
import type { BatcherOptions } from "../../core/options.ts";
import type { LaneFigures } from "./figures.ts";
import { NatsFeed } from "./feed.ts";
import { BatchGate } from "./gate.ts";
import type { NatsQueueOptions } from "./queue-options.ts";

/** Options of a batcher that a worker's batcher can have. */
type OwnBatcherOptions<In, Out> = Pick<
  BatcherOptions<In, Out>,
  | "maxBatchSize"
  | "maxWaitMs"
  | "maxBatchWeight"
  | "weigh"
  | "batchWeight"
  | "runTimeoutMs"
  | "policy"
  | "onBatchError"
  | "shouldBisect"
  | "maxBisectRuns"
  | "groupKey"
  | "cost"
  | "name"
>;

/** Options of `natsWorker`: those of the queue, and those of its batcher. */
export interface NatsWorkerOptions<In, Out> extends NatsQueueOptions, OwnBatcherOptions<In, Out> {
  /** Batches at once. Default: the executor's slots; 1 for a function. */
  readonly concurrency?: number | undefined;
}

export interface NatsWorker {
  /** What runs the batches, for its figures: as `prometheusMetrics` takes it. */
  readonly batcher: Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe">;
  /** Resolves when the executor is ready and items are taken; rejects with the reason it never will. */
  ready(): Promise<void>;
  /** What happened to items here since the start. */
  readonly counts: Readonly<NatsFeed["counts"]> & { readonly deadLetters: number };
  /** The lanes as the NATS server counts them. */
  figures(): Promise<readonly LaneFigures[]>;
  /**
   * Takes no more, finishes what it has, gives back what it has not begun. After `graceMs` (default none) the rest goes
   * back too. The connection stays yours to close.
   */
  drain(options?: { readonly graceMs?: number | undefined }): Promise<void>;
}

interface Entry<In> {
  readonly item: In;
  readonly isAlone: boolean;
  batchId: number;
  batchSize: number;
}

/** The side of a NATS queue where batches run: takes what its slots can run, and answers whoever called. */
export function natsWorker<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: NatsWorkerOptions<In, Out>,
): NatsWorker {
  const { concurrency, maxBatchSize = 32, groupKey, weigh, name = options.queue } = options;
  const executor = typeof run === "function" ? executorOf(run, concurrency ?? 1) : run;
  const gate = new BatchGate();
  const feed = new NatsFeed({ ...options, gate, slots: concurrency ?? executor.slots, maxBatchSize });
  const batcher = createBatcher<Entry<In>, Out>(gate.around(ofEntries(executor)), {
    maxWaitMs: options.maxWaitMs,
    maxBatchWeight: options.maxBatchWeight,
    batchWeight: options.batchWeight,
    runTimeoutMs: options.runTimeoutMs,
    policy: options.policy,
    onBatchError: options.onBatchError,
    shouldBisect: options.shouldBisect,
    maxBisectRuns: options.maxBisectRuns,
    cost: options.cost,
    name,
    maxBatchSize,
    concurrency: concurrency ?? executor.slots,
    maxQueueSize: Infinity, // the feed takes no more than the slots can run
    // A group of its own: nobody shares its batch.
    groupKey: (entry) => (entry.isAlone ? entry : groupKey?.(entry.item)),
    weigh: weigh && ((entry) => weigh(entry.item)),
  });
  batcher.subscribe((record) => feed.observe(record));
  const ready = batcher.ready().then(() =>
    feed.start(async (item, { isAlone, signal, timeoutMs, priority, traceparent }) => {
      const entry: Entry<In> = { item: item as In, isAlone, batchId: 0, batchSize: 1 };
      const value = await batcher(entry, { signal, timeoutMs, priority, tag: traceparent });
      return { value, batchId: entry.batchId, batchSize: entry.batchSize };
    }),
  );
  ready.catch(() => undefined);
  let draining: Promise<void> | undefined;

  return {
    batcher,
    ready: () => ready,
    get counts() {
      return { ...feed.counts, deadLetters: feed.deadLetters };
    },
    figures: () => feed.figures(),
    drain: ({ graceMs } = {}) => {
      draining ??= (async () => {
        await feed.drain({ graceMs });
        await batcher.close({ graceMs: graceMs === undefined ? undefined : 0 });
        await feed.leave();
      })();
      return draining;
    },
  };
}

function executorOf<In, Out>(run: BatchFunction<In, Out>, slots: number): Executor<In, Out> {
  const inOrder = demuxOf<In>({ name: "natsWorker" });
  return {
    slots,
    ready: () => Promise.resolve(),
    run: async (items, handle) => inOrder(await run(items.slice(), handle), items, handle) as ArrayLike<Out | Error>,
    close: () => Promise.resolve(),
  };
}

/** Writes down in each entry in which batch it went. */
function ofEntries<In, Out>(executor: Executor<In, Out>): Executor<Entry<In>, Out> {
  return {
    slots: executor.slots,
    ahead: executor.ahead,
    reportsStart: executor.reportsStart,
    ready: () => executor.ready(),
    run: (entries, context) => {
      for (const entry of entries) {
        entry.batchId = context.batchId;
        entry.batchSize = entries.length;
      }
      return executor.run(
        entries.map(({ item }) => item),
        context,
      );
    },
    close: () => executor.close(),
  };
}
