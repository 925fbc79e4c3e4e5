import { Type, type Schema } from "../../../http/schema/json-schema.ts";
import { count, errorResponses, json, text, type RouteSchema } from "../../../http/schema/route-schema.ts";
import type { ModelDefinition } from "../../contract/model-definition.ts";
import type { Models } from "../../models/models.ts";
import {
  embeddingModel,
  inferenceHeaders,
  knownFields,
  modelName,
  nullable,
  oneOrMoreTexts,
  textItem,
  truncationFields,
  vectorJson,
  vectorLength,
} from "../schemas.ts";
import { givesTokenVectors } from "./embed-all.ts";
import { classifies } from "./predict.ts";

const tags = ["TEI"];

const modelOf = (models: Models, can: (definition: ModelDefinition) => boolean, description: string): Schema =>
  modelName(
    models.all.filter(({ definition }) => can(definition)),
    description,
  );

export const embed = (models: Models): RouteSchema => ({
  summary: "Embed texts, TEI's way",
  tags,
  operationId: "teiEmbed",
  headers: inferenceHeaders(models.settings),
  body: knownFields({
    inputs: oneOrMoreTexts(models.settings),
    model: nullable(embeddingModel(models)),
    normalize: nullable(
      Type.Boolean({ default: true, description: "Vectors of length 1; false leaves them as the model makes them." }),
    ),
    dimensions: vectorLength(models),
    ...truncationFields,
  }),
  response: { 200: json("One vector per text, in order.", Type.Array(vectorJson)), ...errorResponses("tei") },
});

export const embedAll = (models: Models): RouteSchema => ({
  summary: "Embed every token of texts, TEI's way",
  tags,
  operationId: "teiEmbedAll",
  headers: inferenceHeaders(models.settings),
  body: knownFields({
    inputs: oneOrMoreTexts(models.settings),
    model: nullable(modelOf(models, givesTokenVectors, "Default: the first model that gives vectors of tokens.")),
    ...truncationFields,
  }),
  response: {
    200: json("For each text the vectors of its tokens.", Type.Array(Type.Array(vectorJson))),
    ...errorResponses("tei"),
  },
});

const predictions = Type.Array(Type.Object({ score: Type.Number(), label: Type.String() }));

export const predict = (models: Models): RouteSchema => {
  const { maxTextChars, maxInputs } = models.settings;
  const item = textItem(maxTextChars);
  const takesPairs = models.all
    .filter(({ definition }) => classifies(definition))
    .map(({ definition }) => definition.input.kind === "text-pair");
  const lengths = { minItems: takesPairs.includes(false) ? 1 : 2, maxItems: takesPairs.includes(true) ? 2 : 1 };
  const sequence = Type.Array(item, {
    ...(takesPairs.length === 0 ? { minItems: 1, maxItems: 2 } : lengths),
    description: "A text, or two judged together.",
  });
  return {
    summary: "Classify texts, TEI's way",
    tags,
    operationId: "teiPredict",
    headers: inferenceHeaders(models.settings),
    body: knownFields({
      inputs: Type.Union([item, sequence, Type.Array(sequence, { minItems: 1, maxItems: maxInputs })]),
      model: nullable(modelOf(models, classifies, "Default: the first model that gives labels.")),
      raw_scores: nullable(Type.Boolean({ default: false, description: "Logits instead of scores from 0 to 1." })),
      parameters: nullable(
        knownFields({ top_k: nullable(Type.Integer({ minimum: 1, description: "Most labels of a text." })) }),
      ),
      ...truncationFields,
    }),
    response: {
      200: json(
        "The labels of a text, or of each text; the likeliest first.",
        Type.Union([predictions, Type.Array(predictions)]),
      ),
      ...errorResponses("tei"),
    },
  };
};

const { 404: unknown, 503: unready } = errorResponses("tei") as Record<number, unknown>;

export const info: RouteSchema = {
  summary: "Describe the first text model, TEI's way",
  tags,
  operationId: "teiInfo",
  response: {
    200: json(
      "The model and its limits.",
      Type.Object({
        model_id: Type.String(),
        model_sha: Type.Null(),
        model_dtype: Type.String(),
        model_type: Type.Object({}),
        max_concurrent_requests: count("QUEUE_MAX_SIZE."),
        max_input_length: count("Tokens, or characters where the model cuts no text."),
        max_batch_tokens: count("Tokens of a batch."),
        max_batch_requests: count("Items of a batch."),
        max_client_batch_size: count("MAX_INPUTS."),
        auto_truncate: Type.Boolean(),
        tokenization_workers: count("WORKERS."),
        version: text("Of sheaf-server."),
        sha: Type.Null(),
        docker_label: Type.Null(),
      }),
    ),
    404: unknown,
    503: unready,
  },
};
