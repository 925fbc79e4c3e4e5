import { checkResults } from "../core/dispatch/run.ts";
import { BatcherError } from "../core/contract/errors.ts";
import type { BatchContext, Executor, RunHandle } from "../core/contract/executor.ts";
import { BaseRunHandle, runHandleOf } from "../core/contract/base-run-handle.ts";
import { executorOf } from "../core/executors.ts";
import { checkCount, checkFunction, checkOptions, type Check } from "../shared/checks.ts";

/** A batch function with positional results: only its index links a stage's output to an item. */
export type StageFunction<In, Out> = (
  items: In[],
  context: BatchContext,
) => ArrayLike<Out | Error> | PromiseLike<ArrayLike<Out | Error>>;

/** A stage: a function, or an executor's `run`. */
type RunStage = (items: unknown[], handle: BaseRunHandle) => ArrayLike<unknown> | PromiseLike<ArrayLike<unknown>>;

export interface PipelineOptions<In, Prepared, Raw, Out> {
  /**
   * Runs first, here: one batch at a time. One result for each item; an Error leaves that item out.
   * @default nothing
   */
  readonly before?: StageFunction<In, Prepared> | undefined;
  /** The middle: another executor, such as `workerProcess()`, with as many batches at once as it has slots; or a function. */
  readonly executor: Executor<Prepared, Raw> | StageFunction<Prepared, Raw>;
  /**
   * Runs last, here: one batch at a time, in the order the batches came.
   * @default nothing
   */
  readonly after?: StageFunction<Raw, Out> | undefined;
  /**
   * Most batches between the first stage and the last; integer >= 1.
   * @default 32
   */
  readonly maxInFlight?: number | undefined;
}

const pipelineChecks: Record<keyof PipelineOptions<unknown, unknown, unknown, unknown>, Check> = {
  before: checkFunction,
  executor: () => undefined,
  after: checkFunction,
  maxInFlight: checkCount,
};

/**
 * Three successive stages: while one batch is in the middle, the next is prepared, the previous one is finished, and the batcher
 * collects another. Batches leave in the order in which they came. `slots` is the number of batches that can make progress at once,
 * so that further ones keep filling instead of queueing between stages.
 * @throws {RangeError} for a wrong `maxInFlight`. A stage that returns a wrong number of results fails its batch with `RESULT_COUNT`.
 */
export function pipeline<In, Prepared = In, Raw = Prepared, Out = Raw>(
  options: PipelineOptions<In, Prepared, Raw, Out>,
): Executor<In, Exclude<Out, Error>> {
  const { maxInFlight = 32 } = options;
  checkOptions(options, pipelineChecks);
  // Inside, items have the types of the stages.
  const untyped = options as unknown as PipelineOptions<unknown, unknown, unknown, unknown>;
  return new Pipeline(untyped, maxInFlight) as unknown as Executor<In, Exclude<Out, Error>>;
}

class Pipeline implements Executor<unknown, unknown> {
  readonly slots: number;
  readonly runsApart: boolean;
  readonly #before: Stage;
  readonly #middle: Stage;
  readonly #after: Stage;
  readonly #executor: Executor<unknown, unknown>;
  readonly #inFlight: Set<Promise<unknown>> = new Set();
  /** Settles when the batch before has left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: PipelineOptions<unknown, unknown, unknown, unknown>, maxInFlight: number) {
    const { before, executor, after } = options;
    this.#executor = typeof executor === "function" ? executorOf(executor, 1) : executor;
    this.runsApart = this.#executor.runsApart === true;
    const width = this.#executor.slots;
    this.#before = new Stage("before", 1, before);
    this.#middle = new Stage("executor", width, (items, handle) => this.#executor.run(items, handle));
    this.#after = new Stage("after", 1, after);
    this.slots = Math.min(maxInFlight, width + (before === undefined ? 0 : 1) + (after === undefined ? 0 : 1));
  }

  async ready(): Promise<void> {
    await this.#executor.ready();
  }

  found(item: unknown, error: unknown): void {
    this.#executor.found?.(item, error);
  }

  run(items: unknown[], context: RunHandle): Promise<unknown[]> {
    const previous = this.#last;
    const batch = new PipelineBatch(items, runHandleOf(context));
    const results = this.#run(batch, previous);
    const left = Promise.allSettled([Promise.race([results, batch.givenUp]), previous]);
    this.#last = left;
    this.#inFlight.add(left);
    void left.then(() => this.#inFlight.delete(left));
    return results;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
    await this.#executor.close();
  }

  async #run(batch: PipelineBatch, previous: Promise<unknown>): Promise<unknown[]> {
    await this.#before.pass(batch);
    await this.#middle.pass(batch);
    await previous;
    await this.#after.pass(batch);
    batch.handle.measured(batch.runMs);
    return batch.values;
  }
}

/** A batch between stages: each position holds a value, or the Error that a stage answered for its item. */
class PipelineBatch {
  values: unknown[];
  /** Time spent in stages, without the waits between them. */
  runMs = 0;
  readonly handle: BaseRunHandle;
  /** Resolves if its batcher gives it up. */
  readonly givenUp: Promise<void>;

  constructor(items: unknown[], handle: BaseRunHandle) {
    this.values = items.slice();
    this.handle = handle;
    this.givenUp = new Promise((resolve) => {
      handle.onAborted((reason) => reason instanceof BatcherError && reason.code === "RUN_TIMEOUT" && resolve());
    });
  }

  async advance(name: string, stage: RunStage): Promise<void> {
    const places: number[] = [];
    this.values.forEach((value, i) => {
      if (!(value instanceof Error) && !this.handle.isAnswered(i)) places.push(i);
    });
    if (places.length === 0) return;
    this.handle.signal.throwIfAborted();
    const handle = new StageHandle(this.handle, places);
    let results: ArrayLike<unknown>;
    try {
      results = await stage(
        places.map((place) => this.values[place]),
        handle,
      );
    } finally {
      // A stage that measures its own run time excludes the wait for it.
      this.runMs += handle.runMs ?? performance.now() - handle.startedAtMs;
      handle.end();
    }
    const checked = checkResults(results, places.length, `the ${name} stage`, handle.unanswered());
    places.forEach((place, i) => (this.values[place] = checked[i]));
  }
}

/** The context of a stage's function; the pipeline measures how long a stage takes. */
class StageHandle extends BaseRunHandle {
  startedAtMs: number = performance.now();

  constructor(whole: BaseRunHandle, indices: readonly number[]) {
    super(whole.batchId, indices.length);
    this.isPartOf(whole, indices);
  }

  override countRun(items?: number): void {
    super.countRun(items);
    this.startedAtMs = performance.now();
  }
}

/** Runs batches `width` at a time, in order of arrival. */
class Stage {
  readonly #name: string;
  readonly #stage: RunStage | undefined;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(name: string, width: number, stage: RunStage | undefined) {
    this.#name = name;
    this.#free = width;
    this.#stage = stage;
  }

  async pass(batch: PipelineBatch): Promise<void> {
    const stage = this.#stage;
    if (stage === undefined) return;
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((enter) => this.#waiting.push(enter));
    const over = batch.advance(this.#name, stage);
    try {
      // A run that never ends must not block the stage.
      await Promise.race([over, batch.givenUp]);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
    await over;
  }
}
