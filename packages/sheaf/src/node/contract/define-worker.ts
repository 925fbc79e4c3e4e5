/** What `run` gets besides the items. */
export interface RunContext {
  /**
   * Aborts when every caller of the batch has left. Only a run that awaits can see it, not one that keeps its thread busy. Created
   * when first read.
   */
  readonly signal: AbortSignal;
  /** 1, or higher when the batch runs again after a crash. */
  readonly attempt: number;
  /**
   * Gives one item of the batch its result, or an `Error`, before the run has ended; `index` is its index among the items. Only an
   * item's first answer counts, and none after the run. The run may then return the results of the other items only.
   * @throws {RangeError} there is no item at `index`. {TypeError} the result cannot be sent.
   */
  readonly answer: (index: number, result: unknown) => void;
}

/** The optional steps of every worker. */
export interface WorkerLifecycle<Model, Data> {
  /**
   * Loads the model, once in each thread or process, before `ready()` resolves. Its result is handed to the other
   * steps.
   * @default none: the model is undefined
   */
  load?(data: Data): Model | PromiseLike<Model>;
  /**
   * Runs once after `load`, before the first batch: the first runs of most models are slow.
   * @default none
   */
  warmUp?(model: Model): void | PromiseLike<void>;
  /**
   * Releases the model when the worker is closed or recycled.
   * @default none
   */
  unload?(model: Model): void | PromiseLike<void>;
}

/** A worker whose `run` takes the items and returns their results, in order. */
export interface PlainWorker<In, Out, Model, Data> extends WorkerLifecycle<Model, Data> {
  preprocess?: undefined;
  run(items: In[], model: Model, context: RunContext): ArrayLike<Out> | PromiseLike<ArrayLike<Out>>;
  postprocess?: undefined;
}

/** A worker with a step before `run`, such as tokenising. */
export interface PreparingWorker<In, Out, Model, Data, Prepared> extends WorkerLifecycle<Model, Data> {
  preprocess(items: In[], model: Model): Prepared | PromiseLike<Prepared>;
  run(prepared: Prepared, model: Model, context: RunContext): ArrayLike<Out> | PromiseLike<ArrayLike<Out>>;
  postprocess?: undefined;
}

/** A worker with a step after `run`, such as cutting one tensor into rows. */
export interface FinishingWorker<In, Out, Model, Data, Raw> extends WorkerLifecycle<Model, Data> {
  preprocess?: undefined;
  run(items: In[], model: Model, context: RunContext): Raw | PromiseLike<Raw>;
  postprocess(items: In[], raw: Raw, model: Model): ArrayLike<Out> | PromiseLike<ArrayLike<Out>>;
}

export interface StagedWorker<In, Out, Model, Data, Prepared, Raw> extends WorkerLifecycle<Model, Data> {
  preprocess(items: In[], model: Model): Prepared | PromiseLike<Prepared>;
  run(prepared: Prepared, model: Model, context: RunContext): Raw | PromiseLike<Raw>;
  postprocess(prepared: Prepared, raw: Raw, model: Model): ArrayLike<Out> | PromiseLike<ArrayLike<Out>>;
}

declare const types: unique symbol;

/** A worker module's default export. Its types travel to `workerThread<typeof worker>(url)`. */
export interface WorkerDefinition<In, Out, Data = unknown> {
  readonly [types]?: { readonly in: In; readonly out: Out; readonly data: Data };
  readonly run: (...values: never) => unknown;
}

export type InOf<Worker> = Worker extends WorkerDefinition<infer In, infer _Out, infer _Data> ? In : never;
export type OutOf<Worker> = Worker extends WorkerDefinition<infer _In, infer Out, infer _Data> ? Out : never;
export type DataOf<Worker> = Worker extends WorkerDefinition<infer _In, infer _Out, infer Data> ? Data : never;

/**
 * Defines a worker's steps for a batch; the default export of a worker module. All but `run` are optional. Each step
 * sees the whole batch: items in arrival order, results in the same order, an `Error` in the place of a bad item.
 * Typed arrays among the items are views of one buffer, back to back where they are of one kind.
 */
export function defineWorker<In, Out, Model = undefined, Data = unknown>(
  worker: PlainWorker<In, Out, Model, Data>,
): WorkerDefinition<In, Exclude<Out, Error>, Data>;
export function defineWorker<In, Out, Model = undefined, Data = unknown, Prepared = unknown>(
  worker: PreparingWorker<In, Out, Model, Data, Prepared>,
): WorkerDefinition<In, Exclude<Out, Error>, Data>;
export function defineWorker<In, Out, Model = undefined, Data = unknown, Raw = unknown>(
  worker: FinishingWorker<In, Out, Model, Data, Raw>,
): WorkerDefinition<In, Exclude<Out, Error>, Data>;
export function defineWorker<In, Out, Model = undefined, Data = unknown, Prepared = unknown, Raw = unknown>(
  worker: StagedWorker<In, Out, Model, Data, Prepared, Raw>,
): WorkerDefinition<In, Exclude<Out, Error>, Data>;
export function defineWorker(worker: unknown): unknown {
  return worker;
}

/** The same worker without the types of its steps, as its host sees it. */
export interface LoadedWorker {
  load?(data: unknown): unknown;
  warmUp?(model: unknown): unknown;
  unload?(model: unknown): unknown;
  preprocess?(items: unknown[], model: unknown): unknown;
  run(prepared: unknown, model: unknown, context: RunContext): unknown;
  postprocess?(prepared: unknown, raw: unknown, model: unknown): unknown;
}

const steps = ["load", "warmUp", "preprocess", "run", "postprocess", "unload"] as const;

/** @throws {TypeError} the module's default export is not a worker. */
export function workerOf(module: { readonly default?: unknown }, url: string): LoadedWorker {
  const worker = module.default;
  if (typeof worker !== "object" || worker === null || typeof (worker as LoadedWorker).run !== "function") {
    throw new TypeError(
      `${url} is not a worker module: it must \`export default defineWorker({ run(items) { … } })\`.`,
    );
  }
  for (const step of steps) {
    const value = (worker as Record<string, unknown>)[step];
    if (value !== undefined && typeof value !== "function") {
      throw new TypeError(`${url}: ${step} must be a function, got ${typeof value}.`);
    }
  }
  return worker as LoadedWorker;
}
