import type { ElementType, WorkerExecutor } from "sheaf/node";
import type { PythonSettings } from "./python-settings.ts";
import type { SelfTest } from "./self-test.ts";

/** A tensor's element type, by its name in the Open Inference Protocol. */
export type TensorDatatype = ElementType["datatype"] | "BYTES";

/** A named tensor of one item: the batch axis is left out, `null` is an axis of any length. */
export interface TensorSpec {
  readonly name: string;
  readonly datatype: TensorDatatype;
  readonly shape: readonly (number | null)[];
  /** Of BYTES without axes: each is any JSON value, and a text of JSON where only tensors can go. */
  readonly isJson?: boolean | undefined;
}

interface TensorsKind {
  readonly kind: "tensors";
  readonly tensors: readonly TensorSpec[];
  /** False where the model has no batch axis: an item is all of every tensor. Default true. */
  readonly hasBatchAxis?: boolean | undefined;
  /** The only tensor appears on `/infer` as its arrays, not as an object with its name. Default false. */
  readonly isBare?: boolean | undefined;
}

/** One item as the worker takes it; the kind says which type crosses. */
export type ModelInput =
  /** A string; more than `maxTokens` tokens, where it says a number, are cut off, and the result says so. */
  | { readonly kind: "text"; readonly maxTokens?: number | undefined }
  /** `{ query: string, text: string }`, scored together. */
  | { readonly kind: "text-pair"; readonly maxTokens: number }
  /** A Float32Array of exactly `length` numbers; `name` is the tensor's in the Open Inference Protocol, else "input". */
  | { readonly kind: "floats"; readonly length: number; readonly name?: string | undefined }
  /** One typed array (texts: string[]) per tensor, by name, with `shape:NAME` (Int32Array) beside it where an axis is free. */
  | TensorsKind
  /** Any JSON value: a worker module checks its own items. */
  | { readonly kind: "json" };

/** One result as the worker gives it. */
export type ModelOutput =
  /** A bare Float32Array, or `{ vector: Float32Array, tokens: number, truncated: boolean }`. */
  | {
      readonly kind: "vector";
      readonly length: number;
      readonly name?: string | undefined;
      /** Whether the vector of a text embeds it, so that `/v1/embeddings` and `/rerank` take the model. Default true. */
      readonly isEmbedding?: boolean | undefined;
      /** Lengths that `dimensions` of `/v1/embeddings` may ask for, as a Matryoshka model is trained for; default: its own. */
      readonly dimensions?: readonly number[] | "any" | undefined;
    }
  /** `{ scores: Float32Array, tokens: number, truncated: boolean }`, one score per label, in this order. */
  | { readonly kind: "labels"; readonly labels: readonly string[] }
  /** `{ score: number, logit?: number, tokens: number, truncated: boolean }`; `/rerank` makes its scores of the logit. */
  | { readonly kind: "score" }
  /** As the input of that kind. */
  | TensorsKind
  /** A string. */
  | { readonly kind: "text" }
  /** Any JSON value; typed arrays as arrays. */
  | { readonly kind: "json" };

/** The facts that the server needs about a model, the same for every runner. */
export interface CommonSpec {
  /** As in `/infer/{name}`. */
  readonly name: string;
  readonly input: ModelInput;
  readonly output: ModelOutput;
  /** The most items this model takes at once; a larger MAX_BATCH_SIZE does not raise it (1: it cannot be batched). */
  readonly maxBatchSize?: number | undefined;
  /** Items of different groups never share a batch: tensors of different shapes. */
  readonly groupKey?: ((item: unknown) => unknown) | undefined;
  /** An item's weight in tokens, padding counted: the batcher's `weigh` with `batchWeight: "padded"`. */
  readonly weigh?: ((item: unknown) => number) | undefined;
  readonly maxBatchWeight?: number | undefined;
  /** An item that the model takes, for its warm-up; where there is none the server makes one up. */
  readonly sample?: unknown;
  /** The same as JSON, where the model gives one: said in `/v1/models`, and the playground's first input. */
  readonly example?: unknown;
  /**
   * Where it runs, as INFERENCE_DEVICE names it; said in `/health`, `/v1/models`, `/metrics` and on the page. One that takes
   * no threads has its workers in processes.
   */
  readonly device?: string | undefined;
  /** Said in `/v1/models`, and in the log once it is ready. */
  readonly note?: string | undefined;
  /** In a fleet, tells it from others of its name and shape: workers of one version run at a time. */
  readonly version?: string | undefined;
  /** The finding of the self-test, said in `/v1/models`; none where nothing was tried. */
  readonly selfTest?: SelfTest["verdict"] | undefined;
  /** Why it fails on its own sample, where it does. */
  readonly sampleFailure?: string | undefined;
  /**
   * Whether a result may be kept and given to equal items (CACHE_MAX_BYTES). Default: unless the self-test found it not
   * deterministic, or dependent on batch-mates that it runs with.
   */
  readonly isCacheable?: boolean | undefined;
  /** A warning for operators: in the log, in `/v1/models` and on the page. */
  readonly warning?: string | undefined;
}

/** A model that runs in workers of JavaScript. */
export interface ModuleSpec extends CommonSpec {
  /** A module whose default export is `defineWorker({ … })` of `sheaf/node`. */
  readonly workerUrl: URL;
  /** Structured-clonable; handed to `load(data)` in the worker. */
  readonly data: unknown;
}

/** A model whose workers run already: only they know its inputs. */
export interface OpenSpec extends CommonSpec {
  readonly executor: WorkerExecutor<never, unknown>;
}

/** The facts that the server needs about a model before and after its worker has loaded it. */
export type ModelSpec = ModuleSpec | OpenSpec;

/** Settings for every model of a server. */
export interface RunnerSettings {
  /** Threads of one run inside a worker. Default 1: workers, not runs, use the cores. */
  readonly intraOpNumThreads?: number | undefined;
  /** `"auto"`, or `"cpu"`, `"cuda:0"` or `"webgpu"`; several with commas are tried in turn. Default `"cpu"`. */
  readonly device?: string | undefined;
  /**
   * How to serve a model whose results depend on their batch-mates. `"single"` (default): one by one where they do by more
   * than 5 %. `"exact"`: one by one, however little. `"batch"`: in batches, however much.
   */
  readonly batchDependent?: "single" | "exact" | "batch" | undefined;
  /** The most items in a run, for the self-test and for WebGPU's preparation. Default: 8 there, 32 here. */
  readonly maxBatchSize?: number | undefined;
  /** How the workers of a Python model are started. */
  readonly python?: PythonSettings | undefined;
  /** Aborted where the model is not wanted any more: started workers end. */
  readonly signal?: AbortSignal | undefined;
}
