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
import { embeddingTypes, ignoredKeys, inputTypes } from "./request.ts";

const byType = Type.Object({
  float: Type.Optional(Type.Array(vectorJson)),
  base64: Type.Optional(Type.Array(text("Little-endian float32."))),
});

export const embedSchema = (models: Models, version: 1 | 2): RouteSchema => {
  const { maxTextChars, maxInputs } = models.settings;
  return {
    summary: `Embed texts, the way of Cohere's API v${version}`,
    tags: ["Cohere"],
    operationId: `cohereEmbedV${version}`,
    headers: inferenceHeaders(models.settings),
    body: knownFields({
      texts: Type.Array(textItem(maxTextChars), { minItems: 1, maxItems: maxInputs }),
      model: nullable(embeddingModel(models)),
      input_type: nullable(Type.String({ enum: inputTypes, description: "The vector is the same for each." })),
      embedding_types: nullable(
        Type.Array(Type.String({ enum: embeddingTypes }), {
          minItems: 1,
          description: version === 1 ? "Default: bare arrays of numbers." : "Default: float.",
        }),
      ),
      output_dimension: vectorLength(models),
      truncate: nullable(
        Type.String({
          enum: ["END", "NONE"],
          default: "END",
          description: "NONE refuses a text of more tokens than the model takes.",
        }),
      ),
      ...ignored(ignoredKeys),
    }),
    response: {
      200: json(
        "The vectors in the order of the texts.",
        Type.Object({
          id: text("The request's id."),
          texts: Type.Array(Type.String()),
          embeddings: version === 1 ? Type.Union([Type.Array(vectorJson), byType]) : byType,
          response_type: Type.String({ enum: ["embeddings_floats", "embeddings_by_type"] }),
          meta: Type.Object({
            api_version: Type.Object({ version: Type.String() }),
            billed_units: Type.Object({ input_tokens: count("Tokens.") }),
          }),
        }),
      ),
      ...errorResponses("message"),
    },
  };
};
