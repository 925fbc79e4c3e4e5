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
    throw new Problem("MODEL_NOT_FOUND", "No model here embeds, ranks or classifies texts; see /v1/models.");
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
    auto_truncate: true,
    tokenization_workers: settings.workers,
    version: packageVersion(),
    sha: null,
    docker_label: null,
  };
}

function typeOf({ definition }: ServedModel): object {
  const { output } = definition;
  if (embedsTexts(definition)) {
    const pooling = output.kind === "vector" ? output.pooling : undefined;
    return { embedding: pooling === undefined ? {} : { pooling } };
  }
  if (output.kind !== "labels") return { reranker: ids(["LABEL_0"]) };
  return { classifier: ids(output.labels) };
}

const ids = (labels: readonly string[]): object => ({
  id2label: Object.fromEntries(labels.map((label, id) => [id, label])),
  label2id: Object.fromEntries(labels.map((label, id) => [label, id])),
});
