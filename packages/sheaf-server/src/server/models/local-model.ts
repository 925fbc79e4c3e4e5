import {
  BatcherError,
  createBatcher,
  type Batcher,
  type BatchRecord,
  type BatcherStats,
  type CallOptions,
  type Executor,
} from "sheaf";
import type { NatsWorker, WorkerBatcher } from "sheaf/adapters/nats";
import { executorOf, wrapExecutor } from "sheaf/executors";
import type { WorkerExecutor } from "sheaf/node";
import type { ModelCache } from "../../cache/model-cache.ts";
import { inputParser } from "../codec/inputs.ts";
import { CrashedInputs } from "./crashed-inputs.ts";
import { Holds } from "./holds.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { ModelStatistics } from "../contract/model-statistics.ts";
import type { Settings } from "../../settings/settings.ts";
import { queueTracing, tracedBatcher, type QueueTracing } from "../../observe/tracing.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import { refuseLate, type ModelState, type ServedModel, type InputParser } from "../contract/served-model.ts";
import { overloadOrderOf, strategies } from "../../shared/strategies.ts";
import { TurnEnd } from "./turn-end.ts";
import { warmUp } from "./warm-up.ts";
import { withoutStack } from "../../problems/without-stack.ts";
import { roleOf } from "../../settings/role.ts";

/** A model behind its own batcher. */
export class LocalModel implements ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly batcher: Batcher<unknown, unknown>;
  readonly maxBatchSize: number;
  /** JSON value → item. */
  readonly parse: InputParser;
  readonly statistics: ModelStatistics = new ModelStatistics();
  readonly cache: ModelCache | undefined;
  readonly crashedInputs: CrashedInputs;
  /** Items that a shutdown cut off before their result. */
  cutOff = 0;
  /** In a fleet, the worker that takes its items from the queue, once it is ready. */
  worker: NatsWorker | undefined;
  #fed: Promise<void> | undefined;
  #queueUnavailableReason: (() => string | undefined) | undefined;
  #failure: unknown;
  #phase: "loading" | "ready" | "failed" | "closed" = "loading";
  #isReady = false;
  readonly #tracing: QueueTracing;
  readonly #turnEnd = new TurnEnd();
  readonly #holds = new Holds();

  constructor(definition: ModelDefinition, settings: Settings, cache?: ModelCache) {
    this.name = definition.name;
    this.definition = definition;
    this.settings = settings;
    this.cache = cache;
    this.crashedInputs = new CrashedInputs(definition.name, settings.crashedInputMs);
    this.#tracing = queueTracing(definition.name);
    this.parse = inputParser(definition.input, settings.maxTextChars);
    this.maxBatchSize = Math.min(settings.maxBatchSize, definition.maxBatchSize ?? Infinity);
    const executor = this.#executor();
    const { groupKey, weigh, maxBatchWeight } = definition as ModelDefinition & {
      readonly groupKey?: (item: unknown) => unknown;
      readonly weigh?: (item: unknown) => number;
    };
    const batcher = createBatcher<unknown, unknown>(executor, {
      name: definition.name,
      maxBatchSize: this.maxBatchSize,
      maxWaitMs: settings.maxWaitMs,
      maxQueueSize: settings.queueMaxSize,
      timeoutMs: settings.requestTimeoutMs,
      // A worker of a fleet takes no more than its slots can run: late items were refused at the gateway.
      refuseLate: roleOf(settings) === "alone" ? refuseLate : undefined,
      runTimeoutMs: settings.runTimeoutMs,
      policy: strategies[settings.schedulerStrategy].policy(settings),
      overloadOrder: overloadOrderOf(settings),
      groupKey,
      weigh,
      batchWeight: weigh && "padded",
      maxBatchWeight: weigh && maxBatchWeight,
      // Whose result may be kept may be shared before it is there.
      dedupeKey: cache?.keyOf,
      dedupe: cache && "running",
    });
    this.batcher = tracedBatcher(batcher);
    this.batcher.subscribe((record) => this.statistics.batch(record));
    this.workers?.onInstance(() => (this.#isReady = false));
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
   * `unavailableReason` says why `open` has not resolved yet.
   */
  takeFromQueue(open: () => Promise<NatsWorker>, unavailableReason: () => string | undefined): void {
    const opening = async (): Promise<void> => {
      await this.batcher.ready();
      if (this.#phase === "closed") return;
      this.worker = await open();
      await this.worker.ready();
    };
    this.#queueUnavailableReason = () =>
      this.worker === undefined ? unavailableReason() : this.worker.unavailableReason;
    this.#fed = opening();
    this.#fed.catch((error: unknown) => {
      this.#failure ??= error;
      if (this.#phase !== "closed") this.#phase = "failed";
    });
  }

  /** Its batcher, as a worker of a queue runs items on it: each goes on with the trace that came with it. */
  get traced(): WorkerBatcher<unknown, unknown> {
    const { batcher, crashedInputs } = this;
    const { capacity, ready, subscribe } = batcher;
    return {
      capacity,
      ready,
      subscribe,
      get pending() {
        return batcher.pending;
      },
      detailed: (item, { tag, ...options } = {}) =>
        this.#tracing.continue(tag as string | undefined, () => {
          const refusal = crashedInputs.refusal(item);
          if (refusal !== undefined) return Promise.reject(refusal);
          const served = batcher.detailed(item, options);
          served.catch((error: unknown) => crashedInputs.note(item, error));
          return served;
        }),
    };
  }

  get state(): ModelState {
    const { ownState } = this;
    return ownState === "ready" && this.#queueUnavailableReason?.() !== undefined ? "unavailable" : ownState;
  }

  /** Why it cannot run; undefined where it can. */
  get failure(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const outage = this.#phase === "ready" ? this.workers?.outage : undefined;
    if (outage !== undefined) return outage.error;
    const unavailableReason = this.ownState === "ready" ? this.#queueUnavailableReason?.() : undefined;
    return unavailableReason === undefined ? undefined : new Error(unavailableReason);
  }

  /** Whether it can run here, wherever its items come from. */
  get ownState(): ModelState {
    if (this.#phase !== "ready") return this.#phase;
    // Every request asks, and as long as it is ready the answer changes only when an instance does.
    if (this.#isReady) return "ready";
    const state = stateOf(this.workers);
    this.#isReady = state === "ready";
    return state;
  }

  /** Its worker threads or processes; none where it runs in this process. */
  get workers(): WorkerExecutor<never, unknown> | undefined {
    const { run } = this.definition;
    return "instances" in run ? (run as WorkerExecutor<never, unknown>) : undefined;
  }

  stats(): BatcherStats {
    return this.batcher.stats();
  }

  /** One item. @throws {BatcherError} as the batcher does, or the error of the model. */
  infer(item: unknown, options: InferOptions): Promise<Served> {
    const { cache } = this;
    return cache === undefined ? this.#run(item, options) : cache.infer(item, options, () => this.#run(item, options));
  }

  /**
   * Several items; outcomes in order. Items that find no room enter the queue as room appears.
   * @throws {BatcherError} `QUEUE_FULL` when there is room for none of them.
   */
  inferAll(items: readonly unknown[], options: InferOptions): Promise<PromiseSettledResult<Served>[]> {
    const { cache } = this;
    if (cache === undefined) return this.#runAll(items, options);
    return cache.inferAll(items, options, (missing) => this.#runAll(missing, options));
  }

  async #run(item: unknown, options: CallOptions): Promise<Served> {
    const refusal = this.crashedInputs.refusal(item);
    if (refusal !== undefined) throw refusal;
    try {
      const served = await withoutStack(() => this.batcher.detailed(item, options));
      if (this.#hasMore) await this.#turnEnd.reached();
      return served;
    } catch (error) {
      this.#failed(item, error);
      throw error;
    }
  }

  async #runAll(items: readonly unknown[], options: CallOptions): Promise<PromiseSettledResult<Served>[]> {
    if (!this.crashedInputs.isEmpty) {
      const refusals = items.map((item) => this.crashedInputs.refusal(item));
      if (refusals.some((refusal) => refusal !== undefined)) return this.#runOthers(items, refusals, options);
    }
    const outcomes = await withoutStack(() => this.batcher.settleDetailed(items, options));
    for (const [index, outcome] of outcomes.entries())
      if (outcome.status === "rejected") this.#failed(items[index], outcome.reason);
    if (this.#hasMore) await this.#turnEnd.reached();
    return outcomes;
  }

  /** Several items, without those that are refused. */
  async #runOthers(
    items: readonly unknown[],
    refusals: readonly (Error | undefined)[],
    options: CallOptions,
  ): Promise<PromiseSettledResult<Served>[]> {
    const others = await this.#runAll(
      items.filter((_, index) => refusals[index] === undefined),
      options,
    );
    let next = 0;
    return refusals.map((reason) => (reason === undefined ? others[next++]! : { status: "rejected", reason }));
  }

  /** Items wait: they are dispatched before replies are written, which takes as long as a small run. */
  get #hasMore(): boolean {
    return this.batcher.pending.queued > 0;
  }

  hold(): () => void {
    return this.#holds.hold();
  }

  async close(graceMs: number): Promise<void> {
    const startedAtMs = performance.now();
    try {
      await this.#holds.released(graceMs);
      await this.worker?.drain({ graceMs: Math.max(0, graceMs - (performance.now() - startedAtMs)) });
      await this.batcher.close({ graceMs: Math.max(0, graceMs - (performance.now() - startedAtMs)) });
    } finally {
      this.#phase = "closed";
      this.cache?.close();
    }
  }

  #became(phase: "ready" | "failed"): void {
    if (this.#phase === "loading") this.#phase = phase;
  }

  #failed(item: unknown, error: unknown): void {
    if (error instanceof BatcherError && error.code === "CLOSED") this.cutOff++;
    this.crashedInputs.note(item, error);
  }

  /** The definition's executor, which is ready once it is warm. */
  #executor(): Executor<unknown, unknown> {
    const { run, warmUpItem, learnWeight } = this.definition;
    const inner = (typeof run === "function" ? executorOf(run, 1) : run) as Executor<unknown, unknown>;
    return wrapExecutor(inner, {
      run:
        learnWeight === undefined
          ? (items, handle) => inner.run(items, handle)
          : async (items, handle) => {
              const results = await inner.run(items, handle);
              for (const [index, item] of items.entries()) {
                const result = results[index];
                if (result !== undefined && !(result instanceof Error)) learnWeight(item, result);
              }
              return results;
            },
      ready: async () => {
        const runs = await inner.ready();
        if (warmUpItem === undefined) return runs;
        const { warmupBatches: batches } = this.settings;
        return warmUp(inner, warmUpItem, { batches, maxBatchSize: this.maxBatchSize });
      },
    });
  }
}

function stateOf(workers: WorkerExecutor<never, unknown> | undefined): ModelState {
  if (workers === undefined) return "ready";
  const serving = workers.instances().filter(({ role }) => role === "serving");
  if (serving.some(({ state }) => state === "ready" || state === "busy")) return "ready";
  return workers.outage === undefined ? "restarting" : "unavailable";
}
