import { Type, type Schema } from "../../../http/schema/json-schema.ts";
import { count, errorResponses, json, text, type RouteSchema } from "../../../http/schema/route-schema.ts";
import type { Models } from "../../models/models.ts";
import {
  embeddingModel,
  ignored,
  inferenceHeaders,
  knownFields,
  modelName,
  nullable,
  oneOrMoreTexts,
  textItem,
  vectorJson,
  vectorLength,
} from "../schemas.ts";
import { ignoredKeys, ignoredOptions } from "./request.ts";

const group = { tags: ["Ollama"] };
const model = (models: Models): Schema =>
  embeddingModel(models, "Name of a text embedding model; name:latest is name.");
const stream = nullable(Type.Boolean({ enum: [false] }));

function options({ all }: Models): ReturnType<typeof nullable> {
  const most = all.map(({ definition: { input } }) => ("maxTokens" in input ? (input.maxTokens ?? 1) : 1));
  const context = Type.Integer({ minimum: Math.max(1, ...most), description: "At least the model's own." });
  return nullable(knownFields({ num_ctx: nullable(context), ...ignored(ignoredOptions) }));
}

export const embed = (models: Models): RouteSchema => ({
  summary: "Embed texts, Ollama's way",
  ...group,
  operationId: "ollamaEmbed",
  headers: inferenceHeaders(models.settings),
  body: knownFields({
    model: model(models),
    input: oneOrMoreTexts(models.settings),
    truncate: nullable(Type.Boolean({ default: true, description: "false refuses a text of too many tokens." })),
    dimensions: vectorLength(models),
    options: options(models),
    stream,
    ...ignored(ignoredKeys),
  }),
  response: {
    200: json(
      "One vector of length 1 per text, in order.",
      Type.Object({
        model: Type.String(),
        embeddings: Type.Array(vectorJson),
        total_duration: count("Nanoseconds."),
        load_duration: count("Always 0."),
        prompt_eval_count: count("Tokens."),
      }),
    ),
    ...errorResponses("text"),
  },
});

export const embeddings = (models: Models): RouteSchema => ({
  summary: "Embed one text, Ollama's older way",
  ...group,
  operationId: "ollamaEmbeddings",
  headers: inferenceHeaders(models.settings),
  body: knownFields({
    model: model(models),
    prompt: textItem(models.settings.maxTextChars),
    options: options(models),
    stream,
    ...ignored(ignoredKeys),
  }),
  response: { 200: json("Its vector.", Type.Object({ embedding: vectorJson })), ...errorResponses("text") },
});

const details = Type.Object({
  parent_model: Type.String(),
  format: Type.String(),
  family: Type.String(),
  families: Type.Array(Type.String()),
  parameter_size: Type.String(),
  quantization_level: Type.String(),
});

export const tags: RouteSchema = {
  summary: "List the embedding models, Ollama's way",
  ...group,
  operationId: "ollamaTags",
  response: {
    200: json(
      "The models, in the order they were named.",
      Type.Object({
        models: Type.Array(
          Type.Object({ name: Type.String(), model: Type.String(), modified_at: Type.String(), details }),
        ),
      }),
    ),
  },
};

export const show = (models: Models): RouteSchema => {
  const name = modelName(models.deployments, "Name of a model; name:latest is name.");
  return {
    summary: "Describe a model, Ollama's way",
    ...group,
    operationId: "ollamaShow",
    body: Type.Union([
      knownFields({ model: name, ...ignored(["verbose"]) }),
      knownFields({ name, ...ignored(["verbose"]) }),
    ]),
    response: {
      200: json(
        "The facts about the model.",
        Type.Object({
          modelfile: Type.String(),
          parameters: Type.String(),
          template: Type.String(),
          modified_at: Type.String(),
          details,
          model_info: Type.Object({}),
          capabilities: Type.Array(Type.String()),
        }),
      ),
      ...errorResponses("text"),
    },
  };
};

export const version: RouteSchema = {
  summary: "The server's version",
  ...group,
  operationId: "ollamaVersion",
  security: [],
  response: { 200: json("Sheaf's own.", Type.Object({ version: text("Of sheaf-server.") })) },
};
