import type { FastifyInstance, FastifyReply } from "fastify";
import { takeUntyped } from "../../http/bodies/body.ts";
import { inferenceHeaders } from "../../http/call-options.ts";
import { Type } from "../../http/schema/json-schema.ts";
import { count, described, errorResponses, json, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { invalid } from "../../problems/problem.ts";
import { packageVersion } from "../../shared/version.ts";
import { textSchema } from "../codec/inputs.ts";
import { commaSeparated } from "../codec/json-bytes.ts";
import { embedsTexts } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";
import {
  embeddingModel,
  embedTexts,
  severalTexts,
  vectorJson,
  vectorLength,
  type TextsToEmbed,
} from "./embed-texts.ts";
import { sendJson } from "./send-json.ts";
import { anyText, field, ignored, object, oneOf, readLater, required, type Kind } from "./fields.ts";

/** The contract of Weaviate's module text2vec-transformers, with one or several texts per request. */
export async function weaviateRoutes(app: FastifyInstance, models: Models): Promise<void> {
  await app.register(async (module) => {
    // Weaviate omits the content type.
    takeUntyped(module);
    module.post(
      "/vectors",
      described(() => vectorsSchema(models)),
      async (_request, reply) => {
        let wanted!: WeaviateTexts;
        const { vectors } = await embedTexts(models, reply, (body) => (wanted = readVectors(body, models)));
        const dims = vectors[0]!.length;
        const parts = wanted.isSeveral
          ? [`{"vectors":[`, ...commaSeparated(vectors.map((vector) => [vector])), `],"dims":${dims}}`]
          : // Weaviate reads dims; its Python container writes dim.
            [`{"text":${JSON.stringify(wanted.texts)},"dim":${dims},"dims":${dims},"vector":`, vectors[0]!, "}"];
        return sendJson(reply, parts, models.settings);
      },
    );
  });
  const version = packageVersion();
  app.get("/meta", { schema: metaSchema }, () => ({
    server: "sheaf",
    version,
    models: models.all.flatMap(({ name, definition: { input, output } }) => {
      if (!embedsTexts({ input, output }) || output.kind !== "vector") return [];
      return [{ name, dims: output.length, ...("maxTokens" in input ? { max_tokens: input.maxTokens } : {}) }];
    }),
  }));
}

/** Open without a key, and on every server: `/.well-known/live` and `/.well-known/ready`. */
export function wellKnownRoutes(app: FastifyInstance, models: Pick<Models, "status">): void {
  app.get("/.well-known/live", { schema: liveSchema, logLevel: "warn" }, (_request, reply) => reply.code(204).send());
  app.get("/.well-known/ready", { schema: readySchema, logLevel: "warn" }, (_request, reply): FastifyReply => {
    const { status } = models;
    if (status === "warming") reply.header("retry-after", "1");
    return reply.code(status === "ok" ? 204 : 503).send();
  });
}

const configBody = object("an object", {
  pooling_strategy: field(
    readLater(() => Type.String({ enum: ["masked_mean"] })),
    "Or the model's own.",
  ),
  dimensions: vectorLength,
  task_type: field(
    oneOf("query", "passage"),
    "Kind of the texts; the model's prompt for it is put before each, as for input_type.",
  ),
});
const aText: Kind<string> = { ...anyText, schema: ({ settings }) => textSchema(settings) };
const shared = {
  config: field(configBody, "Settings of the vectors."),
  model: embeddingModel,
  // Weaviate's requests include the empty fields of its reply.
  ...ignored("dims", "vector", "error"),
};
const vectorsBody = object("an object with text", {
  text: field(aText, "One text."),
  texts: field(severalTexts, "Several texts."),
  ...shared,
});

interface WeaviateTexts extends TextsToEmbed {
  /** Whether `texts` were given, not `text`. */
  readonly isSeveral: boolean;
}

function readVectors(body: unknown, models: Models): WeaviateTexts {
  const { text, texts, config, model } = vectorsBody.read(body, "");
  if (text !== undefined && texts !== undefined) throw invalid("", "either text or texts", body);
  const isSeveral = texts !== undefined;
  return {
    name: model,
    ...(isSeveral ? { texts, path: "texts" } : { texts: aText.read(text, "text"), path: "text" }),
    isSeveral,
    dimensions: readConfig(config, model, models),
    dimensionsPath: "config.dimensions",
    prompt: { path: "config.task_type", inputType: config?.task_type },
  };
}

/** The length that is asked for. Weaviate sends `masked_mean` by default, whatever the model: its own pooling counts then. */
function readConfig(
  { pooling_strategy: pooling = "masked_mean", dimensions }: Partial<ReturnType<typeof configBody.read>> = {},
  name: string | undefined,
  { all }: Models,
): unknown {
  const model = all.find(({ name: own, definition }) => (name === undefined ? embedsTexts(definition) : own === name));
  const output = model?.definition.output;
  const isOwn = output?.kind === "vector" && output.pooling === pooling;
  if (pooling !== "masked_mean" && !isOwn)
    throw invalid("config.pooling_strategy", '"masked_mean", or the pooling of the model', pooling);
  return dimensions;
}

const tags = ["Weaviate"];
const empty = (description: string): object => ({ type: "null", description });
const open = { tags: ["health"], security: [] };

const vectorsSchema = (models: Models): RouteSchema => ({
  summary: "Embed texts (Weaviate's text2vec-transformers)",
  tags,
  operationId: "weaviateVectors",
  headers: inferenceHeaders(models.settings),
  body: Type.Union([
    object("", { text: required(aText), ...shared }).schema(models),
    object("", { texts: required(severalTexts), ...shared }).schema(models),
  ]),
  response: {
    200: json(
      "The vector, or the vectors in the order of the texts.",
      Type.Union([
        Type.Object({
          text: Type.String(),
          dim: count("Length of the vector."),
          dims: count("Equal to dim."),
          vector: vectorJson,
        }),
        Type.Object({ vectors: Type.Array(vectorJson), dims: count("Length of a vector.") }),
      ]),
    ),
    ...errorResponses("text"),
  },
});

const metaSchema: RouteSchema = {
  summary: "Describe the embedding models (Weaviate)",
  tags,
  operationId: "weaviateMeta",
  response: {
    200: json(
      "The models, in the order of the command line.",
      Type.Object({
        server: Type.String(),
        version: text("Version of sheaf-server."),
        models: Type.Array(
          Type.Object({
            name: Type.String(),
            dims: count("Length of a vector."),
            max_tokens: Type.Optional(count("Number of tokens to which texts are truncated.")),
          }),
        ),
      }),
    ),
  },
};

const liveSchema: RouteSchema = {
  summary: "Check that the process is alive, for Weaviate",
  operationId: "weaviateLive",
  ...open,
  response: { 204: empty("The process is alive.") },
};

const readySchema: RouteSchema = {
  summary: "Check that requests are served, for Weaviate",
  operationId: "weaviateReady",
  ...open,
  response: {
    204: empty("Every model is ready."),
    503: empty("A model is loading or failed, or the server is draining."),
  },
};
