import type { BatchFunction, Executor } from "sheaf";
import type { CommonSpec } from "../../runners/contract/model-spec.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonDemand } from "./json-demand.ts";

/** The version of a model that names none. */
export const onlyVersion = "1";

/** A model to serve: its inputs and outputs, and the executor that runs it. */
export interface ModelDefinition extends Omit<CommonSpec, "groupKey" | "weigh" | "sample"> {
  /** Runs batches of items as `input` says: a function in this process, or an executor such as `workerThread()`. */
  readonly run: BatchFunction<never, unknown> | Executor<never, unknown>;
  /**
   * The task that `/v1/models` shows.
   * @default by its inputs and outputs
   */
  readonly task?: string | undefined;
  /**
   * The version in `/v2/models/{model}/versions/{version}`.
   * @default "1"
   */
  readonly versionName?: string | undefined;
  /**
   * Items of different groups never share a batch.
   * @default none
   */
  readonly groupKey?: ((item: never) => unknown) | undefined;
  /**
   * An item's weight, such as its tokens, padding counted.
   * @default none
   * @see maxBatchWeight
   */
  readonly weigh?: ((item: never) => number) | undefined;
  /**
   * An item that runs in batches of growing size before the model is ready.
   * @default none: nothing is run, since a function may cost money
   */
  readonly warmUpItem?: unknown;
  /**
   * Learns from the replies whether workers should write rows as JSON.
   * @default none
   */
  readonly jsonDemand?: JsonDemand | undefined;
  /**
   * Settings of its own, over the server's.
   * @default the server's
   */
  readonly settings?: Partial<Settings> | undefined;
}

export const embedsTexts = ({ input, output }: Pick<ModelDefinition, "input" | "output">): boolean =>
  input.kind === "text" && output.kind === "vector" && output.isEmbedding !== false;

/** Whether it can rank texts: cross-encoders score, text embedding models rank by the cosine of query and text. */
export const ranksTexts = (definition: ModelDefinition): boolean =>
  (definition.input.kind === "text-pair" && definition.output.kind === "score") || embedsTexts(definition);
