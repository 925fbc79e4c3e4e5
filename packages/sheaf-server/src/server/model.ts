import {
  adaptive,
  auto,
  BatcherError,
  createBatcher,
  greedy,
  window,
  type Batcher,
  type BatchFunction,
  type BatcherStats,
  type CallOptions,
  type Executor,
  type Policy,
} from "sheaf";
import type { WorkerExecutor } from "sheaf/node";
import type { ModelInput, ModelOutput } from "../runners/model-spec.ts";
import { inputParser, type InputParser } from "./inputs.ts";
import type { Settings } from "./settings.ts";
import { WaitEstimate } from "./wait-estimate.ts";
import { warmUp } from "./warm-up.ts";

/** A model to serve: what goes in and out, and what runs it. */
export interface ModelDefinition {
  /** As in `/infer/{name}`. */
  readonly name: string;
  readonly input: ModelInput;
  readonly output: ModelOutput;
  /** Runs batches of items as `input` says: a function in this process, or an executor such as `workerThread()`. */
  readonly run: BatchFunction<never, unknown> | Executor<never, unknown>;
  readonly task?: string | undefined;
  readonly note?: string | undefined;
  /** The most items it takes at once, whatever the setting says. */
  readonly maxBatchSize?: number | undefined;
  readonly groupKey?: ((item: never) => unknown) | undefined;
  readonly weigh?: ((item: never) => number) | undefined;
  readonly maxBatchWeight?: number | undefined;
  /** Run in batches of growing size before the model is ready; without it nothing is run (a function may cost money). */
  readonly warmUpItem?: unknown;
  /** Settings of its own, over the server's. */
  readonly settings?: Partial<Settings> | undefined;
}

/** One result and how it came about; times in milliseconds. */
export interface Served {
  readonly output: unknown;
  /** Arrival → dispatch. */
  readonly queueMs: number;
  /** Items in the batch that it rode in. */
  readonly batchSize: number;
}

type Lane = 0 | 1 | 2;

/** What part of its deadline an item may be expected to take; the rest is for the estimate's error and for HTTP. */
const deadlineShare = 0.85;

/** What waits in a batcher: the item, and what its dispatch writes down about it. */
interface Entry {
  readonly item: unknown;
  readonly lane: Lane;
  readonly arrivedAtMs: number;
  queueMs: number;
  batchSize: number;
  isDispatched: boolean;
}

/** `restarting`: no worker is alive now, but one is on its way; what comes in waits for it. */
export type ModelState = "loading" | "ready" | "restarting" | "failed" | "closed";

/** A model behind its own batcher. */
export class ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly batcher: Batcher<Entry, unknown>;
  readonly maxBatchSize: number;
  /** JSON value → item. */
  readonly parse: InputParser;
  /** Why it failed, once it has. */
  failure: unknown;
  /** Items that a shutdown cut off before their result. */
  cutOff = 0;
  #phase: Exclude<ModelState, "restarting"> = "loading";
  /** Items that wait, by lane: immediate, interactive, bulk. */
  readonly #waiting: [number, number, number] = [0, 0, 0];
  /** Batches handed to the executor. */
  #running = 0;
  /** Items refused before they reached the batcher. */
  #refused = 0;
  readonly #estimate: WaitEstimate;

  constructor(definition: ModelDefinition, settings: Settings) {
    this.name = definition.name;
    this.definition = definition;
    this.settings = settings;
    this.parse = inputParser(definition.input, settings.maxTextChars);
    this.maxBatchSize = Math.min(settings.maxBatchSize, definition.maxBatchSize ?? Infinity);
    const executor = this.#executor();
    const { groupKey, weigh, maxBatchWeight } = definition as ModelDefinition & {
      readonly groupKey?: (item: unknown) => unknown;
      readonly weigh?: (item: unknown) => number;
    };
    this.batcher = createBatcher<Entry, unknown>(executor, {
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
    const limits = { slots: executor.slots, maxBatchSize: this.maxBatchSize };
    this.#estimate = new WaitEstimate(limits, () => this.batcher.stats());
    this.batcher.subscribe((record) => this.#estimate.observe(record));
    this.batcher.ready().then(
      () => this.#became("ready"),
      (error: unknown) => {
        this.failure = error;
        this.#became("failed");
      },
    );
  }

  get state(): ModelState {
    return this.#phase === "ready" ? stateOf(this.workers) : this.#phase;
  }

  /** Its worker threads or processes; none where it runs in this process. */
  get workers(): WorkerExecutor<never, unknown> | undefined {
    const { run } = this.definition;
    return "instances" in run ? (run as WorkerExecutor<never, unknown>) : undefined;
  }

  /** Items that wait for their batch. */
  get waiting(): number {
    const [immediate, interactive, bulk] = this.#waiting;
    return immediate + interactive + bulk;
  }

  /** How long what waits now will take to leave the queue, in milliseconds. */
  get drainMs(): number {
    return this.#estimate.drainMs(this.waiting);
  }

  /** The batcher's figures; what was refused before it counts as rejected too. */
  stats(): BatcherStats {
    const stats = this.batcher.stats();
    return { ...stats, items: { ...stats.items, rejected: stats.items.rejected + this.#refused } };
  }

  /** One item. @throws {BatcherError} as the batcher does; whatever the model threw. */
  async infer(item: unknown, options: CallOptions): Promise<Served> {
    this.#admit(1, options);
    const entry = this.#enter(item, options);
    try {
      const output = await this.batcher(entry, options);
      return { output, queueMs: entry.queueMs, batchSize: entry.batchSize };
    } catch (error) {
      if (error instanceof BatcherError && error.code === "CLOSED") this.cutOff++;
      throw error;
    } finally {
      this.#left(entry);
    }
  }

  /**
   * Several items, admitted whole or not at all; outcomes in order.
   * @throws {BatcherError} `QUEUE_FULL` when not all of them find room.
   */
  async inferAll(items: readonly unknown[], options: CallOptions): Promise<PromiseSettledResult<Served>[]> {
    this.#admit(items.length, options);
    const entries = items.map((item) => this.#enter(item, options));
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
      for (const entry of entries) this.#left(entry);
    }
  }

  async close(graceMs: number): Promise<void> {
    try {
      await this.batcher.close({ graceMs });
    } finally {
      this.#phase = "closed";
    }
  }

  /**
   * Refuses what does not fit, and what could not be answered in time: an answer at once is worth more to the caller than
   * one after the deadline, and a queue that is older than its deadlines serves nobody.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  #admit(items: number, { timeoutMs, priority }: CallOptions): void {
    const { waiting } = this;
    const { queueMaxSize } = this.settings;
    if (waiting + items > queueMaxSize) {
      this.#refused += items;
      const numbers = { waiting, items, queueMaxSize };
      throw new BatcherError("QUEUE_FULL", `${this.name}: no room for ${items} more.`, numbers);
    }
    const before = this.#waiting.slice(0, laneOf(priority) + 1).reduce((sum, count) => sum + count, 0);
    if (timeoutMs === undefined || before === 0) return;
    const expectedMs = this.#estimate.latencyMs(before + items - 1, this.#running);
    if (expectedMs === undefined || expectedMs <= deadlineShare * timeoutMs) return;
    this.#refused += items;
    const numbers = { waiting, expectedMs, timeoutMs };
    throw new BatcherError("QUEUE_FULL", `${this.name}: no result is to be had in time.`, numbers);
  }

  #enter(item: unknown, { priority }: CallOptions): Entry {
    const lane = laneOf(priority);
    this.#waiting[lane]++;
    return { item, lane, arrivedAtMs: performance.now(), queueMs: 0, batchSize: 0, isDispatched: false };
  }

  #left(entry: Entry): void {
    if (!entry.isDispatched) this.#waiting[entry.lane]--;
    entry.isDispatched = true;
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
      ready: async () => {
        await inner.ready();
        if (warmUpItem !== undefined)
          await warmUp(inner, warmUpItem, { batches: this.settings.warmupBatches, maxBatchSize: this.maxBatchSize });
      },
      run: async (entries, context) => {
        const startedAtMs = performance.now();
        for (const entry of entries) {
          this.#left(entry);
          entry.queueMs = startedAtMs - entry.arrivedAtMs;
          entry.batchSize = context.size;
        }
        const items = entries.map(({ item }) => item);
        this.#running++;
        try {
          return await inner.run(items, context);
        } finally {
          this.#running--;
        }
      },
      close: () => inner.close(),
    };
  }
}

function laneOf(priority: CallOptions["priority"]): Lane {
  if (priority === "immediate") return 0;
  return priority === "bulk" ? 2 : 1;
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
    run: async (items, context) => run(items as never[], context),
    close: () => Promise.resolve(),
  };
}

function policyOf(settings: Settings): Policy {
  switch (settings.schedulerStrategy) {
    case "auto":
      return auto({ latencyBudgetMs: settings.latencyBudgetMs });
    case "greedy":
      return greedy();
    case "fifo":
      return window();
    case "adaptive":
      return adaptive({ targetLatencyMs: settings.adaptiveTargetLatencyMs });
  }
}
