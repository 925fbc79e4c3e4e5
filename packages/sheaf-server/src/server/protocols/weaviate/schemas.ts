import { Type } from "../../../http/schema/json-schema.ts";
import { count, errorResponses, json, text, type RouteSchema } from "../../../http/schema/route-schema.ts";
import type { Models } from "../../models/models.ts";
import {
  embeddingModel,
  ignored,
  inferenceHeaders,
  knownFields,
  nullable,
  textItem,
  vectorJson,
  vectorLength,
} from "../schemas.ts";
import { ignoredConfig, ignoredKeys } from "./request.ts";

const tags = ["Weaviate"];
/** A reply without a body. */
const empty = (description: string): object => ({ type: "null", description });
const open = { tags: ["health"], security: [] };

export const vectors = (models: Models): RouteSchema => {
  const { maxTextChars, maxInputs } = models.settings;
  const shared = {
    model: nullable(embeddingModel(models)),
    config: nullable(
      knownFields({
        pooling_strategy: nullable(Type.String({ enum: ["masked_mean"], description: "Or the model's own." })),
        dimensions: vectorLength(models),
        ...ignored(ignoredConfig),
      }),
    ),
    ...ignored(ignoredKeys),
  };
  const texts = Type.Array(textItem(maxTextChars), { minItems: 1, maxItems: maxInputs });
  return {
    summary: "Embed texts, as Weaviate's module text2vec-transformers asks",
    tags,
    operationId: "weaviateVectors",
    headers: inferenceHeaders(models.settings),
    body: Type.Union([knownFields({ text: textItem(maxTextChars), ...shared }), knownFields({ texts, ...shared })]),
    response: {
      200: json(
        "The vector, or the vectors in the order of the texts.",
        Type.Union([
          Type.Object({
            text: Type.String(),
            dim: count("Length of the vector."),
            dims: count("The same."),
            vector: vectorJson,
          }),
          Type.Object({ vectors: Type.Array(vectorJson), dims: count("Length of a vector.") }),
        ]),
      ),
      ...errorResponses("text"),
    },
  };
};

export const meta: RouteSchema = {
  summary: "Describe the embedding models, for Weaviate",
  tags,
  operationId: "weaviateMeta",
  response: {
    200: json(
      "The models, in the order they were named.",
      Type.Object({
        server: Type.String(),
        version: text("Of sheaf-server."),
        models: Type.Array(
          Type.Object({
            name: Type.String(),
            dims: count("Length of a vector."),
            max_tokens: Type.Optional(count("Where texts are cut.")),
          }),
        ),
      }),
    ),
  },
};

export const live: RouteSchema = {
  summary: "Whether the process answers, for Weaviate",
  operationId: "weaviateLive",
  ...open,
  response: { 204: empty("It does.") },
};

export const ready: RouteSchema = {
  summary: "Whether requests are served, for Weaviate",
  operationId: "weaviateReady",
  ...open,
  response: { 204: empty("Every model is ready."), 503: empty("Not yet, or no longer.") },
};
