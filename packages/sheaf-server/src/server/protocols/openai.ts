import type { FastifyInstance } from "fastify";
import type { ModelOutput } from "../../runners/contract/model-spec.ts";
import { shortened } from "../../runners/text/pooling.ts";
import { jsonOf } from "../../http/bodies/body.ts";
import { callOptionsOf } from "../../http/call-options.ts";
import { describeInput, objectOf, takesJson } from "../codec/inputs.ts";
import { commaSeparated, jsonBytes, type JsonParts } from "../codec/json-bytes.ts";
import { embedsTexts, type ModelDefinition } from "../contract/model-definition.ts";
import type { Deployment } from "../models/deployment.ts";
import type { Served } from "../../cache/served.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { tokensOf, vectorOf } from "../codec/outputs.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import { modelHead } from "../contract/model-head.ts";
import { inferEvery } from "./requests.ts";
import type { RouteSchema } from "../../http/schema/route-schema.ts";
import { embeddingsSchema, modelSchema, modelsSchema } from "./schemas.ts";

/** `POST /v1/embeddings`, `GET /v1/models` and `GET /v1/models/{id}`, as OpenAI's clients expect them. */
export function openaiRoutes(app: FastifyInstance, models: Models): void {
  const embeddings = (): RouteSchema => embeddingsSchema(models);
  app.post("/v1/embeddings", { schema: embeddings(), config: { describe: embeddings } }, async (request, reply) => {
    // The model is named in the body: a draining server says so before it reads one.
    if (models.isDraining) models.take(undefined, "model");
    const { name, input, isBase64, dimensions } = readEmbeddings(jsonOf(request.body, models.settings));
    const model = models.take(name, "model");
    const items = readTexts(input, model);
    const length = readDimensions(dimensions, model);
    const options = callOptionsOf(request, model.settings);
    const served = await inferEvery(model, items, options);
    model.definition.jsonDemand?.note(!isBase64 && length === undefined);
    return reply.type("application/json").send(embeddingsJson(served, { model: model.name, isBase64, length }));
  });

  const described = ({ name, current, state, reason }: Deployment): object => ({
    ...modelHead(name),
    ...(current === undefined ? {} : descriptionOf(current)),
    state,
    ...(reason === undefined ? {} : { reason }),
  });
  app.get("/v1/models", { schema: modelsSchema }, () => ({ object: "list", data: models.deployments.map(described) }));
  const schema = (): RouteSchema => modelSchema(models);
  app.get("/v1/models/:id", { schema: schema(), config: { describe: schema } }, (request) =>
    described(models.find((request.params as { readonly id: string }).id, "id")),
  );
}

/** The facts about a model once its inputs are known. */
const descriptionOf = ({ definition, maxBatchSize }: ServedModel): object => ({
  task: definition.task ?? taskOf(definition),
  max_batch_size: maxBatchSize,
  ...(definition.device === undefined ? {} : { device: definition.device }),
  input: describeInput(definition.input),
  ...(definition.example === undefined ? {} : { sample: definition.example }),
  ...(definition.selfTest === undefined ? {} : { self_test: definition.selfTest }),
  ...(definition.note === undefined ? {} : { note: definition.note }),
});

/** The task of a model, by its inputs and outputs. */
function taskOf(definition: Pick<ModelDefinition, "input" | "output">): string {
  const { input, output } = definition;
  if (input.kind === "text-pair" && output.kind === "score") return "rerank";
  if (embedsTexts(definition)) return "embedding";
  if (output.kind === "labels") return "classification";
  if (takesJson(input) || output.kind === "json") return "json";
  return input.kind === "text" || output.kind === "text" ? "text" : "tensor";
}

interface Embeddings {
  readonly name: string;
  readonly input: unknown;
  readonly isBase64: boolean;
  readonly dimensions: unknown;
}

function readEmbeddings(body: unknown): Embeddings {
  const { model, input, encoding_format, dimensions, user } = objectOf(body, "", "an object with model and input", [
    "model",
    "input",
    "encoding_format",
    "dimensions",
    "user",
  ]);
  if (typeof model !== "string") throw invalid("model", "the name of a model", model);
  if (typeof (user ?? "") !== "string") throw invalid("user", "a text", user);
  const format = encoding_format ?? "float";
  if (format !== "float" && format !== "base64") throw invalid("encoding_format", '"float" or "base64"', format);
  return { name: model, input, isBase64: format === "base64", dimensions };
}

/** How long vectors are to be; undefined for the model's own length. */
function readDimensions(dimensions: unknown, { name, definition }: ServedModel): number | undefined {
  const { length, dimensions: shorter = [] } = definition.output as ModelOutput & { readonly kind: "vector" };
  if ((dimensions ?? length) === length) return undefined;
  const isInteger = Number.isSafeInteger(dimensions) && (dimensions as number) >= 1 && (dimensions as number) < length;
  if (isInteger && (shorter === "any" || shorter.includes(dimensions as number))) return dimensions as number;
  if (shorter === "any") throw invalid("dimensions", `an integer from 1 to ${length}`, dimensions);
  const only = `${length}, the only length ${name} gives (its config.json names no matryoshka_dimensions)`;
  const lengths = [...shorter.filter((one) => one < length), length];
  throw invalid("dimensions", lengths.length === 1 ? only : `one of ${lengths.join(", ")}`, dimensions);
}

/** A token id, or a text as token ids. */
const isTokens = (value: unknown): boolean => Number.isInteger(Array.isArray(value) ? value[0] : value);

/** Whose ids they are is anyone's guess: the vocabulary is the caller's, and seldom the model's. */
function tokens({ name }: ServedModel): Problem {
  const message =
    `input must be a text or an array of texts: ${name} does not take token ids. ` +
    "With LangChain for Python, set check_embedding_ctx_length=False on OpenAIEmbeddings.";
  return new Problem("INVALID_INPUT", message, { param: "input" });
}

/** One invalid text refuses the request: OpenAI's reply has no place for an error beside vectors. */
function readTexts(input: unknown, model: ServedModel): unknown[] {
  if (!embedsTexts(model.definition))
    throw new Problem("INVALID_INPUT", `${model.name} makes no text embeddings; use /infer/${model.name}.`, {
      param: "model",
    });
  if (!Array.isArray(input)) return [model.parse(input, "input")];
  if (isTokens(input[0])) throw tokens(model);
  const { maxInputs } = model.settings;
  if (input.length === 0) throw invalid("input", "a text or an array of texts that is not empty", input);
  if (input.length > maxInputs) throw invalid("input", `an array of at most ${maxInputs} texts (MAX_INPUTS)`, input);
  return input.map((value: unknown, index) => model.parse(value, `input[${index}]`));
}

function embeddingsJson(
  served: readonly Served[],
  { model, isBase64, length }: { model: string; isBase64: boolean; length: number | undefined },
): Buffer {
  let tokens = 0;
  const data = served.map(({ value }, index): JsonParts => {
    tokens += tokensOf(value);
    const vector = length === undefined ? vectorOf(value) : shortened(vectorOf(value), length);
    const head = `{"object":"embedding","index":${index},"embedding":`;
    return isBase64 ? [`${head}"${base64Of(vector)}"}`] : [head, vector, "}"];
  });
  const usage = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return jsonBytes([
    `{"object":"list","data":[`,
    ...commaSeparated(data),
    `],"model":${JSON.stringify(model)},"usage":${usage}}`,
  ]);
}

/** Little-endian float32, as OpenAI's clients decode it; every platform of Node is little-endian but s390x. */
const base64Of = ({ buffer, byteOffset, byteLength }: Float32Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");
