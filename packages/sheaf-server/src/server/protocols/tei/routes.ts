import type { FastifyInstance } from "fastify";
import type { Models } from "../../models/models.ts";
import { Type } from "../../../http/schema/json-schema.ts";
import { inferenceHeaders } from "../../../http/call-options.ts";
import { described, errorResponses, json, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { commaSeparated } from "../../codec/json-bytes.ts";
import {
  embeddingModel,
  embedTexts,
  oneOrMoreTexts,
  vectorJson,
  vectorLength,
  type TextsToEmbed,
} from "../embed-texts.ts";
import { field, object, required, trueOrFalse } from "../fields.ts";
import { sendJson } from "../send-json.ts";
import { promptName } from "../prompts.ts";
import { truncationOnEitherSide } from "../truncation.ts";
import { embedAll, embedAllSchema } from "./embed-all.ts";
import { infoOf, infoSchema } from "./info.ts";
import { predict, predictSchema } from "./predict.ts";

/** The routes of text-embeddings-inference: https://huggingface.github.io/text-embeddings-inference/ */
export function teiRoutes(app: FastifyInstance, models: Models): void {
  app.post(
    "/embed",
    described(() => embedSchema(models)),
    async (_request, reply) => {
      const { vectors } = await embedTexts(models, reply, readEmbed);
      const rows = commaSeparated(vectors.map((vector) => [vector]));
      return sendJson(reply, ["[", ...rows, "]"], models.settings);
    },
  );
  app.post(
    "/embed_all",
    described(() => embedAllSchema(models)),
    (request, reply) => embedAll(models, request, reply),
  );
  app.post(
    "/predict",
    described(() => predictSchema(models)),
    (request, reply) => predict(models, request, reply),
  );
  app.get("/info", { schema: infoSchema }, () => infoOf(models));
}

const embedBody = object("an object with inputs", {
  inputs: required(oneOrMoreTexts),
  model: embeddingModel,
  normalize: field(
    trueOrFalse,
    "Normalize the vectors to length 1; false returns them as the model outputs them.",
    true,
  ),
  dimensions: vectorLength,
  prompt_name: promptName,
  ...truncationOnEitherSide,
});

function readEmbed(body: unknown): TextsToEmbed {
  const {
    inputs,
    model,
    normalize,
    dimensions,
    prompt_name: name,
    truncate,
    truncation_direction,
  } = embedBody.read(body, "");
  return {
    name: model,
    texts: inputs,
    path: "inputs",
    dimensions,
    prompt: { path: "prompt_name", name },
    cut: truncation_direction,
    truncate,
    isUnit: normalize,
  };
}

const embedSchema = (models: Models): RouteSchema => ({
  summary: "Embed texts (TEI)",
  tags: ["TEI"],
  operationId: "teiEmbed",
  headers: inferenceHeaders(models.settings),
  body: embedBody.schema(models),
  response: { 200: json("One vector per text, in order.", Type.Array(vectorJson)), ...errorResponses("tei") },
});
