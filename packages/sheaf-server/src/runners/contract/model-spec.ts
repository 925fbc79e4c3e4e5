import type { SelfTest } from "sheaf/models";
import type { WorkerExecutor } from "sheaf/node";
import type { ElementType } from "sheaf/internal/node";
import type { PythonSettings } from "./python-settings.ts";

/** A tensor's element type, by its name in the Open Inference Protocol. */
export type TensorDatatype = ElementType["datatype"] | "BYTES";

/** A named tensor of one item: the batch axis is left out, `null` is an axis of any length. */
export interface TensorSpec {
  readonly name: string;
  readonly datatype: TensorDatatype;
  readonly shape: readonly (number | null)[];
  /**
   * Of BYTES without axes: each is any JSON value, and a text of JSON where only tensors can go.
   * @default false
   */
  readonly isJson?: boolean | undefined;
}

interface TensorsKind {
  readonly kind: "tensors";
  readonly tensors: readonly TensorSpec[];
  /**
   * False where the model has no batch axis: an item is all of every tensor.
   * @default true
   */
  readonly hasBatchAxis?: boolean | undefined;
  /**
   * The only tensor appears on `/infer` as its arrays, not as an object with its name.
   * @default false
   */
  readonly isBare?: boolean | undefined;
}

/** One item as the worker takes it; the kind says which type crosses. */
export type ModelInput =
  /** A string; tokens beyond `maxTokens` are cut off, and the result says so. */
  | {
      readonly kind: "text";
      /** @default none: nothing is cut off */
      readonly maxTokens?: number | undefined;
      /**
       * Texts that a request may put before its own, by name. An item is then also `{ text, prompt, cut }`, each but the text
       * optional: a prompt in place of the model's default one, and the side on which a text is cut, `"left"` or `"right"`.
       * @default none: items are strings
       */
      readonly prompts?: Readonly<Record<string, string>> | undefined;
      /**
       * Whether two texts that are judged together are an item too, as `{ query, text }`.
       * @default false
       */
      readonly takesPairs?: boolean | undefined;
    }
  /** `{ query: string, text: string }`, scored together. */
  | { readonly kind: "text-pair"; readonly maxTokens: number }
  /** A Float32Array of exactly `length` numbers. */
  | {
      readonly kind: "floats";
      readonly length: number;
      /**
       * The tensor's name in the Open Inference Protocol.
       * @default "input"
       */
      readonly name?: string | undefined;
    }
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
      /**
       * The tensor's name in the Open Inference Protocol.
       * @default "output"
       */
      readonly name?: string | undefined;
      /**
       * Whether the vector of a text embeds it, so that `/v1/embeddings` and `/rerank` take the model.
       * @default true
       */
      readonly isEmbedding?: boolean | undefined;
      /**
       * Lengths that `dimensions` of `/v1/embeddings` may ask for, as a Matryoshka model is trained for.
       * @default the `length` alone
       */
      readonly dimensions?: readonly number[] | "any" | undefined;
      /**
       * By length, the range of each number of a vector of length 1, for vectors in int8 and uint8.
       * @default none: such vectors are refused
       */
      readonly ranges?: Readonly<Record<string, VectorRanges>> | undefined;
      /**
       * How the vectors of tokens become one, where that is known.
       * @default none
       */
      readonly pooling?: string | undefined;
    }
  /**
   * `{ scores: Float32Array, logits?: Float32Array, tokens: number, truncated: boolean }`, one score per label, in this order;
   * `raw_scores` of `/predict` gives the logits.
   */
  | { readonly kind: "labels"; readonly labels: readonly string[] }
  /** `{ score: number, logit?: number, tokens: number, truncated: boolean }`; `/rerank` makes its scores of the logit. */
  | { readonly kind: "score" }
  /** As the input of that kind. */
  | TensorsKind
  | { readonly kind: "text" }
  /** Any JSON value; typed arrays as arrays. */
  | { readonly kind: "json" };

/** The smallest and the largest number of each dimension in a sample. */
export interface VectorRanges {
  readonly min: readonly number[];
  readonly max: readonly number[];
}

/** The facts that the server needs about a model, the same for every runner. */
export interface CommonSpec {
  /** As in `/infer/{name}`. */
  readonly name: string;
  readonly input: ModelInput;
  readonly output: ModelOutput;
  /**
   * Most items that this model takes at once; a larger MAX_BATCH_SIZE does not raise it, and 1 says that it cannot
   * be batched.
   * @default none
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Most items in a batch where MAX_BATCH_SIZE is not set.
   * @default 32
   */
  readonly batchSize?: number | undefined;
  /**
   * Items of different groups never share a batch, such as tensors of different shapes.
   * @default none
   */
  readonly groupKey?: ((item: unknown) => unknown) | undefined;
  /**
   * An item's weight, such as its tokens: the batcher's `weigh`.
   * @default none
   * @see maxBatchWeight
   * @see batchWeight
   */
  readonly weigh?: ((item: unknown) => number) | undefined;
  /**
   * Called with an item and its result, so that `weigh` becomes more exact.
   * @default none
   * @see weigh
   */
  readonly learnWeight?: ((item: unknown, result: unknown) => void) | undefined;
  /**
   * How the items of a batch weigh together: `"padded"` where each takes as long as the heaviest, `"apart"` where the runner
   * keeps light ones apart from heavy ones.
   * @default "padded"
   */
  readonly batchWeight?: "apart" | "padded" | undefined;
  /**
   * Weight up to which a batch is filled; a heavier item runs alone.
   * @default none
   * @see weigh
   */
  readonly maxBatchWeight?: number | undefined;
  /**
   * An item that the model takes, for its warm-up.
   * @default none: the server makes one up
   */
  readonly sample?: unknown;
  /**
   * The sample as JSON, shown in `/v1/models` and as the playground's first input.
   * @default none
   * @see sample
   */
  readonly example?: unknown;
  /**
   * The device that the model runs on, named as in INFERENCE_DEVICE and shown in `/health`, `/v1/models`, `/metrics`
   * and on the page. A model on a device that takes no threads has its workers in processes.
   * @default none
   */
  readonly device?: string | undefined;
  /**
   * A remark, shown in `/v1/models` and logged once the model is ready.
   * @default none
   */
  readonly note?: string | undefined;
  /**
   * Fields of the model's files that are ignored because they change no result; logged when the model is ready.
   * @default none
   */
  readonly unreadFields?: string | undefined;
  /**
   * Tells the model from others of its name and shape in a fleet: workers of one version run at a time.
   * @default none
   */
  readonly version?: string | undefined;
  /**
   * The finding of the self-test, shown in `/v1/models`.
   * @default none: nothing was tried
   */
  readonly selfTest?: SelfTest["verdict"] | undefined;
  /**
   * Why the model fails on its own sample.
   * @default none
   */
  readonly sampleFailure?: string | undefined;
  /**
   * Whether a result may be kept and given to equal items (CACHE_MAX_BYTES).
   * @default true, unless the self-test found results that vary, or that depend on batch-mates
   */
  readonly isCacheable?: boolean | undefined;
  /**
   * `"bisect"`: items of a batch that fails, crashes its worker or hangs run again until the bad ones are found. `"fail"`: no run is
   * repeated, for a model with effects.
   * @default "bisect"
   */
  readonly onBatchError?: "bisect" | "fail" | undefined;
  /**
   * A warning for operators: in the log, in `/v1/models` and on the page.
   * @default none
   */
  readonly warning?: string | undefined;
}

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

export interface RunnerSettings {
  /**
   * Threads of one run inside a worker.
   * @default 1: workers, not runs, use the cores
   */
  readonly intraOpNumThreads?: number | undefined;
  /**
   * `"auto"`, or `"cpu"`, `"cuda:0"` or `"webgpu"`; several with commas are tried in turn.
   * @default "cpu"
   */
  readonly device?: string | undefined;
  /**
   * How to serve a model whose results depend on their batch-mates: `"single"` runs items alone if they differ by
   * more than 5 %, `"exact"` if they differ at all, `"batch"` never.
   * @default "single"
   */
  readonly batchDependent?: "single" | "exact" | "batch" | undefined;
  /**
   * Most items in a run, for the self-test and for WebGPU's preparation.
   * @default 8 for the self-test, 32 for WebGPU
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * The graph of a text model's folder, as a path in it.
   * @default model.onnx or onnx/model.onnx
   */
  readonly modelFile?: string | undefined;
  /**
   * How a text model's folder without a pooling module makes vectors of token vectors: pooling modes, and `normalize`.
   * @default mean
   */
  readonly pooling?: readonly string[] | undefined;
  /**
   * How the workers of a Python model are started.
   * @default none
   */
  readonly python?: PythonSettings | undefined;
  /**
   * Aborted when the model is no longer wanted: started workers end.
   * @default none
   */
  readonly signal?: AbortSignal | undefined;
}
