import { checkResults } from "../core/demux.ts";
import type { BatchContext, Executor } from "../core/executor.ts";

/** A batch function whose results are positional: of what a stage makes of an item, only its place says whose it is. */
type StageFunction<In, Out> = (
  items: In[],
  context: BatchContext,
) => ArrayLike<Out | Error> | PromiseLike<ArrayLike<Out | Error>>;

/** Options of `pipeline`. */
export interface PipelineOptions<In, Prepared, Raw, Out> {
  /** Runs first, here: one batch at a time. One result for each item; an Error leaves that item out. Default: nothing. */
  readonly before?: StageFunction<In, Prepared> | undefined;
  /** The middle: another executor, such as `workerProcess()`, with as many batches at once as it has slots; or a function. */
  readonly executor: Executor<Prepared, Raw> | StageFunction<Prepared, Raw>;
  /** Runs last, here: one batch at a time, in the order the batches came. Default: nothing. */
  readonly after?: StageFunction<Raw, Out> | undefined;
  /** Most batches between the first stage and the last; integer >= 1. Default 32. */
  readonly maxInFlight?: number | undefined;
}

/**
 * Three stages in a row: while one batch is in the middle, the next is prepared, the one before is finished, and the
 * batcher collects another. Batches leave in the order they came. `slots` is the number of batches that can make
 * progress at once, so that the rest keeps filling instead of queueing between stages.
 * @throws {RangeError} a wrong `maxInFlight`. A stage that returns another number of results: `RESULT_COUNT`.
 */
export function pipeline<In, Prepared = In, Raw = Prepared, Out = Raw>(
  options: PipelineOptions<In, Prepared, Raw, Out>,
): Executor<In, Exclude<Out, Error>> {
  const { maxInFlight = 32 } = options;
  if (!Number.isInteger(maxInFlight) || maxInFlight < 1) {
    throw new RangeError(`maxInFlight must be an integer >= 1, got ${JSON.stringify(maxInFlight)}`);
  }
  // Inside, items are whatever the stages make of them.
  const untyped = options as unknown as PipelineOptions<unknown, unknown, unknown, unknown>;
  return new Pipeline(untyped, maxInFlight) as unknown as Executor<In, Exclude<Out, Error>>;
}

class Pipeline implements Executor<unknown, unknown> {
  readonly slots: number;
  readonly #before: Stage;
  readonly #middle: Stage;
  readonly #after: Stage;
  readonly #executor: Pick<Executor<unknown, unknown>, "ready" | "close"> | undefined;
  readonly #inFlight: Set<Promise<unknown>> = new Set();
  /** Ends when the batch before has left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: PipelineOptions<unknown, unknown, unknown, unknown>, maxInFlight: number) {
    const { before, executor, after } = options;
    const isFunction = typeof executor === "function";
    const width = isFunction ? 1 : executor.slots;
    this.#executor = isFunction ? undefined : executor;
    this.#before = new Stage("before", 1, before);
    this.#middle = new Stage(
      "executor",
      width,
      isFunction ? executor : (items, context) => executor.run(items, context),
    );
    this.#after = new Stage("after", 1, after);
    this.slots = Math.min(maxInFlight, width + (before === undefined ? 0 : 1) + (after === undefined ? 0 : 1));
  }

  async ready(): Promise<void> {
    await this.#executor?.ready();
  }

  run(items: unknown[], context: BatchContext): Promise<unknown[]> {
    const previous = this.#last;
    const results = this.#run(items, context, previous);
    const left = Promise.allSettled([results, previous]);
    this.#last = left;
    this.#inFlight.add(left);
    void left.then(() => this.#inFlight.delete(left));
    return results;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
    await this.#executor?.close();
  }

  async #run(items: unknown[], context: BatchContext, previous: Promise<unknown>): Promise<unknown[]> {
    const batch = new PipelineBatch(items, context);
    await this.#before.pass(batch);
    await this.#middle.pass(batch);
    await previous;
    await this.#after.pass(batch);
    context.runMs = batch.runMs;
    return batch.values;
  }
}

/** A batch between stages: every slot holds a value, or the Error that ended its way. */
class PipelineBatch {
  values: unknown[];
  /** Time in stages, without waiting between them. */
  runMs = 0;
  readonly #context: BatchContext;

  constructor(items: unknown[], context: BatchContext) {
    this.values = items.slice();
    this.#context = context;
  }

  async advance(name: string, stage: StageFunction<unknown, unknown>): Promise<void> {
    const places: number[] = [];
    this.values.forEach((value, i) => {
      if (!(value instanceof Error)) places.push(i);
    });
    if (places.length === 0) return;
    const { signal, batchId, attempt } = this.#context;
    signal.throwIfAborted();
    const context: BatchContext = { signal, batchId, attempt, size: places.length };
    this.#context.givenUp = (error) => context.givenUp?.(error);
    const startedAtMs = performance.now();
    let results: ArrayLike<unknown>;
    try {
      results = await stage(
        places.map((place) => this.values[place]),
        context,
      );
    } finally {
      // A stage that knows its own run time leaves out how long the batch waited for it.
      this.runMs += context.runMs ?? performance.now() - startedAtMs;
      this.#context.attempt = Math.max(attempt, context.attempt);
      this.#context.stillRuns = context.stillRuns;
    }
    const checked = checkResults(results, places.length, `the ${name} stage`);
    places.forEach((place, i) => (this.values[place] = checked[i]));
  }
}

/** Runs batches `width` at a time, in the order they come. */
class Stage {
  readonly #name: string;
  readonly #stage: StageFunction<unknown, unknown> | undefined;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(name: string, width: number, stage: StageFunction<unknown, unknown> | undefined) {
    this.#name = name;
    this.#free = width;
    this.#stage = stage;
  }

  async pass(batch: PipelineBatch): Promise<void> {
    const stage = this.#stage;
    if (stage === undefined) return;
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((enter) => this.#waiting.push(enter));
    try {
      await batch.advance(this.#name, stage);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
