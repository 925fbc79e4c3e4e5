import {
  BatcherError,
  createBatcher,
  type Batcher,
  type BatchFunction,
  type BatchRecord,
  type BatcherStats,
  type CallOptions,
  type Executor,
} from "sheaf";
import type { NatsWorker, WorkerBatcher } from "sheaf/adapters/nats";
import type { WorkerExecutor } from "sheaf/node";
import { Admission, type Entry } from "./admission.ts";
import { inputParser, type InputParser } from "./inputs.ts";
import type { ModelDefinition } from "./model-definition.ts";
import { ModelStatistics } from "./model-statistics.ts";
import type { Settings } from "./settings.ts";
import { queueTracing, tracedBatcher, type QueueTracing } from "./tracing.ts";
import type { ModelState, Served, ServedModel } from "./served-model.ts";
import { policyOf } from "./strategy.ts";
import { warmUp } from "./warm-up.ts";

/** A model behind its own batcher. */
export class LocalModel implements ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly batcher: Batcher<Entry, unknown>;
  readonly maxBatchSize: number;
  /** JSON value → item. */
  readonly parse: InputParser;
  readonly statistics: ModelStatistics = new ModelStatistics();
  /** Items that a shutdown cut off before their result. */
  cutOff = 0;
  /** In a fleet, what brings its items, once it is ready. */
  worker: NatsWorker | undefined;
  #fed: Promise<void> | undefined;
  #feedTrouble: (() => string | undefined) | undefined;
  #failure: unknown;
  #phase: "loading" | "ready" | "failed" | "closed" = "loading";
  #workersState: ModelState | undefined;
  readonly #admission: Admission;
  readonly #tracing: QueueTracing;

  constructor(definition: ModelDefinition, settings: Settings) {
    this.name = definition.name;
    this.definition = definition;
    this.settings = settings;
    this.#tracing = queueTracing(definition.name);
    this.parse = inputParser(definition.input, settings.maxTextChars);
    this.maxBatchSize = Math.min(settings.maxBatchSize, definition.maxBatchSize ?? Infinity);
    const executor = this.#executor();
    const { name, maxBatchSize } = this;
    const limits = { name, queueMaxSize: settings.queueMaxSize, slots: executor.slots, maxBatchSize };
    this.#admission = new Admission(limits, () => this.batcher.stats());
    const { groupKey, weigh, maxBatchWeight } = definition as ModelDefinition & {
      readonly groupKey?: (item: unknown) => unknown;
      readonly weigh?: (item: unknown) => number;
    };
    const batcher = createBatcher<Entry, unknown>(executor, {
      name: definition.name,
      maxBatchSize: this.maxBatchSize,
      maxWaitMs: settings.maxWaitMs,
      maxQueueSize: settings.queueMaxSize,
      timeoutMs: settings.requestTimeoutMs,
      runTimeoutMs: settings.runTimeoutMs,
      policy: policyOf(settings),
      groupKey: groupKey && ((entry) => groupKey(entry.item)),
      weigh: weigh && ((entry) => weigh(entry.item)),
      batchWeight: weigh && "padded",
      maxBatchWeight: weigh && maxBatchWeight,
    });
    this.batcher = tracedBatcher(batcher);
    this.batcher.subscribe((record) => this.#admission.observe(record));
    this.batcher.subscribe((record) => this.statistics.batch(record));
    this.workers?.onInstance(() => (this.#workersState = undefined));
    this.batcher.ready().then(
      () => this.#became("ready"),
      (error: unknown) => {
        this.#failure = error;
        this.#became("failed");
      },
    );
  }

  ready(): Promise<void> {
    return this.#fed ?? this.batcher.ready();
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    return this.batcher.subscribe(listener);
  }

  /**
   * Takes its items from a queue, from when it is ready until it closes; only then is it ready to its server.
   * `trouble` says why `open` has not resolved yet.
   */
  feedFrom(open: () => Promise<NatsWorker>, trouble: () => string | undefined): void {
    const opening = async (): Promise<void> => {
      await this.batcher.ready();
      if (this.#phase === "closed") return;
      this.worker = await open();
    };
    this.#feedTrouble = () => (this.worker === undefined ? trouble() : this.worker.trouble);
    this.#fed = opening();
    this.#fed.catch((error: unknown) => {
      this.#failure ??= error;
      if (this.#phase !== "closed") this.#phase = "failed";
    });
  }

  /** Its batcher, as a worker of a queue runs items on it: each goes on with the trace that came with it. */
  get traced(): WorkerBatcher<unknown, unknown> {
    const { batcher } = this;
    const { capacity, ready, subscribe } = batcher;
    return {
      capacity,
      ready,
      subscribe,
      get load() {
        return batcher.load;
      },
      ask: async (item, { tag, ...options } = {}) => {
        const entry = this.#admission.enter(item, options);
        try {
          return await this.#tracing.continue(tag as string | undefined, () => batcher.ask(entry, options));
        } finally {
          this.#admission.left(entry);
        }
      },
    };
  }

  get state(): ModelState {
    const { ownState } = this;
    return ownState === "ready" && this.#feedTrouble?.() !== undefined ? "unavailable" : ownState;
  }

  /** Why it can not run, where it can not. */
  get failure(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const trouble = this.ownState === "ready" ? this.#feedTrouble?.() : undefined;
    return trouble === undefined ? undefined : new Error(trouble);
  }

  /** Whether it can run here, however its items come. */
  get ownState(): ModelState {
    if (this.#phase !== "ready") return this.#phase;
    // Every request asks; the answer changes when an instance does.
    return (this.#workersState ??= stateOf(this.workers));
  }

  /** Its worker threads or processes; none where it runs in this process. */
  get workers(): WorkerExecutor<never, unknown> | undefined {
    const { run } = this.definition;
    return "instances" in run ? (run as WorkerExecutor<never, unknown>) : undefined;
  }

  /** Items that wait for their batch. */
  get waiting(): number {
    return this.#admission.waiting;
  }

  /** How long what waits now will take to leave the queue, in milliseconds. */
  get drainMs(): number {
    return this.#admission.drainMs;
  }

  /** The batcher's figures; what was refused before it counts as rejected too. */
  stats(): BatcherStats {
    const stats = this.batcher.stats();
    return { ...stats, items: { ...stats.items, rejected: stats.items.rejected + this.#admission.refused } };
  }

  /** One item. @throws {BatcherError} as the batcher does; whatever the model threw. */
  async infer(item: unknown, options: CallOptions): Promise<Served> {
    this.#admission.admit(1, options);
    const entry = this.#admission.enter(item, options);
    try {
      const output = await this.batcher(entry, options);
      return { output, queueMs: entry.queueMs, batchSize: entry.batchSize };
    } catch (error) {
      if (error instanceof BatcherError && error.code === "CLOSED") this.cutOff++;
      throw error;
    } finally {
      this.#admission.left(entry);
    }
  }

  /**
   * Several items, admitted whole or not at all; outcomes in order.
   * @throws {BatcherError} `QUEUE_FULL` when not all of them find room.
   */
  async inferAll(items: readonly unknown[], options: CallOptions): Promise<PromiseSettledResult<Served>[]> {
    this.#admission.admit(items.length, options);
    const entries = items.map((item) => this.#admission.enter(item, options));
    try {
      const outcomes = await this.batcher.settle(entries, options);
      return outcomes.map((outcome, index) => {
        if (outcome.status === "rejected") {
          if (outcome.reason instanceof BatcherError && outcome.reason.code === "CLOSED") this.cutOff++;
          return outcome;
        }
        const { queueMs, batchSize } = entries[index]!;
        return { status: "fulfilled", value: { output: outcome.value, queueMs, batchSize } };
      });
    } finally {
      for (const entry of entries) this.#admission.left(entry);
    }
  }

  async close(graceMs: number): Promise<void> {
    const startedAtMs = performance.now();
    try {
      await this.worker?.drain({ graceMs });
      await this.batcher.close({ graceMs: Math.max(0, graceMs - (performance.now() - startedAtMs)) });
    } finally {
      this.#phase = "closed";
    }
  }

  #became(phase: "ready" | "failed"): void {
    if (this.#phase === "loading") this.#phase = phase;
  }

  /** The definition's executor, taking entries instead of items. */
  #executor(): Executor<Entry, unknown> {
    const { run, warmUpItem } = this.definition;
    const inner = typeof run === "function" ? inProcess(run) : (run as Executor<unknown, unknown>);
    return {
      slots: inner.slots,
      ahead: inner.ahead,
      reportsStart: inner.reportsStart,
      ready: async () => {
        const runs = await inner.ready();
        if (warmUpItem === undefined) return runs;
        const { warmupBatches: batches } = this.settings;
        return warmUp(inner, warmUpItem, { batches, maxBatchSize: this.maxBatchSize });
      },
      run: (entries, context) =>
        this.#admission.dispatch(entries, context.batchId, (items) => inner.run(items, context)),
      close: () => inner.close(),
    };
  }
}

function stateOf(workers: WorkerExecutor<never, unknown> | undefined): ModelState {
  if (workers === undefined) return "ready";
  const serving = workers.instances().filter(({ role }) => role === "serving");
  if (serving.some(({ state }) => state === "ready" || state === "busy")) return "ready";
  const dead = serving.filter(({ state }) => state === "dead");
  return dead.length === workers.slots ? "failed" : "restarting";
}

function inProcess(run: BatchFunction<never, unknown>): Executor<unknown, unknown> {
  return {
    slots: 1,
    ready: () => Promise.resolve(),
    run: async (items, context) => (await run(items as never[], context)) as ArrayLike<unknown>,
    close: () => Promise.resolve(),
  };
}
