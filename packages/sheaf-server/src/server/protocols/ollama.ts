import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { jsonOf } from "../../http/bodies/body.ts";
import { inferenceHeaders } from "../../http/call-options.ts";
import { Type } from "../../http/schema/json-schema.ts";
import { count, described, errorResponses, json, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { packageVersion } from "../../shared/version.ts";
import { textSchema } from "../codec/inputs.ts";
import { commaSeparated } from "../codec/json-bytes.ts";
import { embedsTexts } from "../contract/model-definition.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { embedTexts, oneOrMoreTexts, vectorJson, vectorLength, type TextsToEmbed } from "./embed-texts.ts";
import {
  anyText,
  field,
  ignored,
  kindOf,
  modelThat,
  nameSchema,
  object,
  required,
  trueOrFalse,
  type Kind,
} from "./fields.ts";
import { sendJson } from "./send-json.ts";
import { limitOf, tokenLimit } from "./truncation.ts";

/** The routes of Ollama for embedding models: https://docs.ollama.com/api */
export function ollamaRoutes(app: FastifyInstance, models: Models): void {
  app.post(
    "/api/embed",
    described(() => embedSchema(models)),
    async (_request, reply) => {
      const startedAtMs = performance.now();
      const { model, vectors, tokens } = await embedTexts(models, reply, (body) => readEmbed(body, models));
      const durationNs = Math.round((performance.now() - startedAtMs) * 1e6);
      const rows = commaSeparated(vectors.map((vector) => [vector]));
      const parts = [
        `{"model":${JSON.stringify(model.name)},"embeddings":[`,
        ...rows,
        // A served model is loaded before its first request.
        `],"total_duration":${durationNs},"load_duration":0,"prompt_eval_count":${tokens}}`,
      ];
      return sendJson(reply, parts, models.settings);
    },
  );
  app.post(
    "/api/embeddings",
    described(() => embeddingsSchema(models)),
    async (_request, reply) => {
      const { vectors } = await embedTexts(models, reply, (body) => readPrompt(body, models));
      return sendJson(reply, [`{"embedding":`, vectors[0]!, "}"], models.settings);
    },
  );
  app.get("/api/tags", { schema: tagsSchema }, () => listOf(models));
  app.post(
    "/api/show",
    described(() => showSchema(models)),
    ({ body }) => shown(readShow(jsonOf(body), models), models),
  );
  const version = packageVersion();
  app.get("/api/version", { schema: versionSchema, logLevel: "warn" }, () => ({ version }));
}

const model = required(modelThat(embedsTexts), "Name of a text embedding model; name:latest is name.");

/** Options for generation, memory or threads, which change no vector. */
const ignoredOptions = ignored(
  "embedding_only", "f16_kv", "frequency_penalty", "keep_alive", "logits_all", "low_vram", "main_gpu", "min_p", "mirostat",
  "mirostat_eta", "mirostat_tau", "num_batch", "num_gpu", "num_keep", "num_predict", "num_thread", "numa", "penalize_newline",
  "presence_penalty", "repeat_last_n", "repeat_penalty", "seed", "stop", "temperature", "tfs_z", "top_k", "top_p", "typical_p",
  "use_mlock", "use_mmap", "vocab_only",
); // prettier-ignore

const shared = {
  options: field(
    object("an object of options", {
      num_ctx: field(tokenLimit, "Must be at least the model's own limit."),
      ...ignoredOptions,
    }),
    "Options of a model.",
  ),
  stream: field(
    kindOf("false: the reply comes in one piece", (value) => value === false, Type.Boolean({ enum: [false] })),
    "The reply comes in one piece.",
  ),
  // A model is served until the server ends.
  ...ignored("keep_alive"),
};

const embedBody = object("an object with model and input", {
  model,
  input: required(oneOrMoreTexts),
  truncate: field(trueOrFalse, "Truncate texts that are too long; false refuses them. Default: AUTO_TRUNCATE."),
  dimensions: vectorLength,
  ...shared,
});

const embeddingsBody = object("an object with model and prompt", {
  model,
  prompt: required({ ...anyText, schema: ({ settings }) => textSchema(settings) }),
  ...shared,
});

const namedModel: Kind<string> = { ...modelThat(() => true), schema: ({ deployments }) => nameSchema(deployments) };
const name = "Name of a model; name:latest is name.";
const verbose = ignored("verbose");
/** Of `POST /api/show`; older clients call the field of the model `name`. */
const showBodies = {
  model: object("an object with model", {
    model: required(namedModel, name),
    name: field(anyText, "Ignored."),
    ...verbose,
  }),
  name: object("an object with model", { name: required(namedModel, name), ...verbose }),
};

/** Ollama's vectors have length 1. */
function readEmbed(body: unknown, models: Models): TextsToEmbed {
  const { model, input, truncate, dimensions, options } = embedBody.read(body, "");
  return {
    name: withoutTag(model, models),
    texts: input,
    path: "input",
    dimensions,
    truncate,
    tokenLimit: limitOf(options?.num_ctx, "options.num_ctx"),
    isUnit: true,
  };
}

/** One text, whose vector is not normalised. */
function readPrompt(body: unknown, models: Models): TextsToEmbed {
  const { model, prompt, options } = embeddingsBody.read(body, "");
  return {
    name: withoutTag(model, models),
    texts: prompt,
    path: "prompt",
    tokenLimit: limitOf(options?.num_ctx, "options.num_ctx"),
  };
}

function readShow(body: unknown, models: Models): string {
  const given = (body ?? {}) as { readonly model?: unknown; readonly name?: unknown };
  const isOlder = (given.model ?? null) === null && (given.name ?? null) !== null;
  return withoutTag(isOlder ? showBodies.name.read(body, "").name : showBodies.model.read(body, "").model, models);
}

const tag = ":latest";

/** Ollama's clients may name a model with its tag. */
function withoutTag(name: string, { deployments }: Models): string {
  if (!name.endsWith(tag) || deployments.some((deployment) => deployment.name === name)) return name;
  return name.slice(0, -tag.length);
}

const startedAt = new Date().toISOString();

const listOf = ({ all }: Models): object => ({
  models: all
    .filter(({ definition }) => embedsTexts(definition))
    .map(({ name, definition }) => ({
      name: name + tag,
      model: name + tag,
      modified_at: startedAt,
      size: 0,
      digest: digestOf(name, definition),
      details: detailsOf(definition),
    })),
});

/** Changes with the version of a model, so that clients notice. */
const digestOf = (name: string, { version = "" }: ServedModel["definition"]): string =>
  createHash("sha256").update(`${name}\n${version}`).digest("hex");

/** A model of any kind, in the fields of Ollama's `/api/show`. @throws {Problem} 404; 503 while it loads. */
function shown(name: string, models: Models): object {
  const { definition } = models.describe(name, "model");
  const { input, output } = definition;
  const details = detailsOf(definition);
  return {
    modelfile: "",
    parameters: "",
    template: "",
    modified_at: startedAt,
    details,
    model_info: {
      "general.architecture": "sheaf",
      "general.basename": name,
      ...("maxTokens" in input && input.maxTokens !== undefined ? { "sheaf.context_length": input.maxTokens } : {}),
      ...(output.kind === "vector" ? { "sheaf.embedding_length": output.length } : {}),
    },
    capabilities: embedsTexts(definition) ? ["embedding"] : [],
  };
}

/** Files and sizes of a model are not known here. */
const detailsOf = (definition: ServedModel["definition"]): object => {
  const family = embedsTexts(definition) ? "embedding" : definition.output.kind;
  return { parent_model: "", format: "", family, families: [family], parameter_size: "", quantization_level: "" };
};

const tags = ["Ollama"];

const embedSchema = (models: Models): RouteSchema => ({
  summary: "Embed texts (Ollama)",
  tags,
  operationId: "ollamaEmbed",
  headers: inferenceHeaders(models.settings),
  body: embedBody.schema(models),
  response: {
    200: json(
      "One vector of length 1 per text, in order.",
      Type.Object({
        model: Type.String(),
        embeddings: Type.Array(vectorJson),
        total_duration: count("Nanoseconds."),
        load_duration: count("Always 0."),
        prompt_eval_count: count("Number of tokens."),
      }),
    ),
    ...errorResponses("text"),
  },
});

const embeddingsSchema = (models: Models): RouteSchema => ({
  summary: "Embed one text (Ollama, older)",
  tags,
  operationId: "ollamaEmbeddings",
  headers: inferenceHeaders(models.settings),
  body: embeddingsBody.schema(models),
  response: { 200: json("The vector of the text.", Type.Object({ embedding: vectorJson })), ...errorResponses("text") },
});

const details = Type.Object({
  parent_model: Type.String(),
  format: Type.String(),
  family: Type.String(),
  families: Type.Array(Type.String()),
  parameter_size: Type.String(),
  quantization_level: Type.String(),
});

const tagsSchema: RouteSchema = {
  summary: "List the embedding models (Ollama)",
  tags,
  operationId: "ollamaTags",
  response: {
    200: json(
      "The models, in the order of the command line.",
      Type.Object({
        models: Type.Array(
          Type.Object({
            name: Type.String(),
            model: Type.String(),
            modified_at: Type.String(),
            size: count("Always 0: the size of a model is not known."),
            digest: text("SHA-256 of the model's name and version."),
            details,
          }),
        ),
      }),
    ),
  },
};

const showSchema = (models: Models): RouteSchema => ({
  summary: "Describe a model (Ollama)",
  tags,
  operationId: "ollamaShow",
  body: Type.Union([showBodies.model.schema(models), showBodies.name.schema(models)]),
  response: {
    200: json(
      "The description of the model.",
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
});

const versionSchema: RouteSchema = {
  summary: "Show the server's version",
  tags,
  operationId: "ollamaVersion",
  security: [],
  response: { 200: json("Version of sheaf-server.", Type.Object({ version: text("Version of sheaf-server.") })) },
};
