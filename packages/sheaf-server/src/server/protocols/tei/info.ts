import { Type } from "../../../http/schema/json-schema.ts";
import { count, errorResponses, json, text, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { packageVersion } from "../../../shared/version.ts";
import { embedsTexts, ranksTexts, type ModelDefinition } from "../../contract/model-definition.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { Problem } from "../../../problems/problem.ts";
import { classifies } from "./predict.ts";

/** The model that TEI's routes run without a name, in the fields of its `/info`. @throws {Problem} 404; 400; 503. */
export function infoOf(models: Models): object {
  const runsOnTei = (definition: ModelDefinition): boolean => ranksTexts(definition) || classifies(definition);
  const model = models.take(undefined, "model", runsOnTei);
  if (!runsOnTei(model.definition))
    throw new Problem("MODEL_NOT_FOUND", "No model on this server embeds, ranks or classifies texts; see /v1/models.");
  const { name, definition, settings, maxBatchSize } = model;
  const maxInputLength = ("maxTokens" in definition.input && definition.input.maxTokens) || settings.maxTextChars;
  return {
    model_id: name,
    model_sha: null,
    model_dtype: "float32",
    model_type: typeOf(model),
    max_concurrent_requests: settings.queueMaxSize,
    max_input_length: maxInputLength,
    max_batch_tokens: definition.maxBatchWeight ?? maxBatchSize * maxInputLength,
    max_batch_requests: maxBatchSize,
    max_client_batch_size: settings.maxInputs,
    auto_truncate: settings.autoTruncate,
    tokenization_workers: settings.workers,
    version: packageVersion(),
    sha: null,
    docker_label: null,
  };
}

function typeOf({ definition }: ServedModel): object {
  const { output } = definition;
  if (embedsTexts(definition)) {
    // TEI's name of it.
    const pooling = output.kind === "vector" ? output.pooling?.replace("lasttoken", "last_token") : undefined;
    return { embedding: pooling === undefined ? {} : { pooling } };
  }
  if (output.kind !== "labels") return { reranker: ids(["LABEL_0"]) };
  return { classifier: ids(output.labels) };
}

const ids = (labels: readonly string[]): object => ({
  id2label: Object.fromEntries(labels.map((label, id) => [id, label])),
  label2id: Object.fromEntries(labels.map((label, id) => [label, id])),
});

const { 404: unknown, 503: unready } = errorResponses("tei") as Record<number, unknown>;

export const infoSchema: RouteSchema = {
  summary: "Describe the first text model (TEI)",
  tags: ["TEI"],
  operationId: "teiInfo",
  response: {
    200: json(
      "The model and its limits.",
      Type.Object({
        model_id: Type.String(),
        model_sha: Type.Null(),
        model_dtype: Type.String(),
        model_type: Type.Object({}),
        max_concurrent_requests: count("The setting QUEUE_MAX_SIZE."),
        max_input_length: count("Maximum length of a text in tokens, or in characters if the model does not truncate."),
        max_batch_tokens: count("Maximum number of tokens in a batch."),
        max_batch_requests: count("Maximum number of items in a batch."),
        max_client_batch_size: count("The setting MAX_INPUTS."),
        auto_truncate: Type.Boolean(),
        tokenization_workers: count("The setting WORKERS."),
        version: text("Version of sheaf-server."),
        sha: Type.Null(),
        docker_label: Type.Null(),
      }),
    ),
    404: unknown,
    503: unready,
  },
};
