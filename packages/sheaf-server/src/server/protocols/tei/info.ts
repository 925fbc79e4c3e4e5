import { packageVersion } from "../../../shared/version.ts";
import { embedsTexts, ranksTexts } from "../../contract/model-definition.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { Problem } from "../../../problems/problem.ts";
import { classifies } from "./predict.ts";

/** The first model that TEI's routes can run, in the fields of its `/info`. @throws {Problem} 404; 503 while it loads. */
export function infoOf(models: Models): object {
  if (models.isDraining) models.take(undefined, "model");
  const model = models.all.find(({ definition }) => ranksTexts(definition) || classifies(definition));
  if (model === undefined) {
    const isLoading = models.status === "warming";
    const message = "No model here embeds, ranks or classifies texts; see /v1/models.";
    throw isLoading
      ? new Problem("NOT_READY", "The models are still loading; see /readyz.", { headers: { "retry-after": "1" } })
      : new Problem("MODEL_NOT_FOUND", message);
  }
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
