import type { BatchFunction, Executor } from "sheaf";
import type { ModelInput, ModelOutput, ModelSpec } from "../../runners/model-spec.ts";
import type { Settings } from "../settings.ts";
import type { JsonDemand } from "./json-demand.ts";

/** A model to serve: what goes in and out, and what runs it. */
export interface ModelDefinition {
  /** As in `/infer/{name}`. */
  readonly name: string;
  readonly input: ModelInput;
  readonly output: ModelOutput;
  /** Runs batches of items as `input` says: a function in this process, or an executor such as `workerThread()`. */
  readonly run: BatchFunction<never, unknown> | Executor<never, unknown>;
  readonly task?: string | undefined;
  /** Where it runs, as INFERENCE_DEVICE names it; said in `/health`, `/v1/models`, `/metrics` and on the page. */
  readonly device?: string | undefined;
  /** Said in `/v1/models`, and in the log once it is ready. */
  readonly note?: string | undefined;
  /** In a fleet, tells it from others of its name and shape: workers of one version run at a time. */
  readonly version?: string | undefined;
  /** As in `/v2/models/{model}/versions/{version}`. Default `"1"`. */
  readonly versionName?: string | undefined;
  /** What the self-test found; said in `/v1/models`. */
  readonly selfTest?: ModelSpec["selfTest"];
  /**
   * Whether a result may be kept and given to equal items (CACHE_MAX_BYTES). Default: unless the self-test found it not
   * deterministic, or dependent on batch-mates that it runs with.
   */
  readonly isCacheable?: boolean | undefined;
  /** Why it fails on its own sample, where it does. */
  readonly sampleFailure?: string | undefined;
  /** Said in the log as a warning, in `/v1/models` and on the page. */
  readonly warning?: string | undefined;
  /** The most items it takes at once, whatever the setting says. */
  readonly maxBatchSize?: number | undefined;
  readonly groupKey?: ((item: never) => unknown) | undefined;
  readonly weigh?: ((item: never) => number) | undefined;
  readonly maxBatchWeight?: number | undefined;
  /** Run in batches of growing size before the model is ready; without it nothing is run (a function may cost money). */
  readonly warmUpItem?: unknown;
  /** Where its workers can write JSON: told what its replies are. */
  readonly jsonDemand?: JsonDemand | undefined;
  /** An item as JSON, said in `/v1/models` and shown in the page's playground. */
  readonly example?: unknown;
  /** Settings of its own, over the server's. */
  readonly settings?: Partial<Settings> | undefined;
}

/** Whether it makes text embeddings. */
export const embedsTexts = ({ input, output }: ModelDefinition): boolean =>
  input.kind === "text" && output.kind === "vector" && output.isEmbedding !== false;

/** Whether it can rank texts: cross-encoders score, text embedding models rank by the cosine of query and text. */
export const ranksTexts = (definition: ModelDefinition): boolean =>
  (definition.input.kind === "text-pair" && definition.output.kind === "score") || embedsTexts(definition);
