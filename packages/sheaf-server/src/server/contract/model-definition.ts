import type { BatchFunction, Executor } from "sheaf";
import type { CommonSpec } from "../../runners/contract/model-spec.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonDemand } from "./json-demand.ts";

/** The version of every model that does not say another. */
export const onlyVersion = "1";

/** A model to serve: its inputs and outputs, and the executor that runs it. */
export interface ModelDefinition extends Omit<CommonSpec, "groupKey" | "weigh" | "sample"> {
  /** Runs batches of items as `input` says: a function in this process, or an executor such as `workerThread()`. */
  readonly run: BatchFunction<never, unknown> | Executor<never, unknown>;
  /** The task that `/v1/models` shows. Default: by its inputs and outputs. */
  readonly task?: string | undefined;
  /** As in `/v2/models/{model}/versions/{version}`. Default `"1"`. */
  readonly versionName?: string | undefined;
  readonly groupKey?: ((item: never) => unknown) | undefined;
  readonly weigh?: ((item: never) => number) | undefined;
  /** Run in batches of growing size before the model is ready; without it nothing is run (a function may cost money). */
  readonly warmUpItem?: unknown;
  /** Where its workers can write JSON: told what its replies are. */
  readonly jsonDemand?: JsonDemand | undefined;
  /** Settings of its own, over the server's. */
  readonly settings?: Partial<Settings> | undefined;
}

/** Whether it makes text embeddings. */
export const embedsTexts = ({ input, output }: Pick<ModelDefinition, "input" | "output">): boolean =>
  input.kind === "text" && output.kind === "vector" && output.isEmbedding !== false;

/** Whether it can rank texts: cross-encoders score, text embedding models rank by the cosine of query and text. */
export const ranksTexts = (definition: ModelDefinition): boolean =>
  (definition.input.kind === "text-pair" && definition.output.kind === "score") || embedsTexts(definition);
