import type { FastifyInstance } from "fastify";
import { describeInput, objectOf, takesJson } from "../codec/inputs.ts";
import { base64Of, commaSeparated, jsonBytes, type JsonParts } from "../codec/json-bytes.ts";
import { embedsTexts, type ModelDefinition } from "../contract/model-definition.ts";
import type { Deployment } from "../models/deployment.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { invalid } from "../../problems/problem.ts";
import { modelHead } from "../contract/model-head.ts";
import { embedTexts, type Embedded, type TextsToEmbed } from "./embed-texts.ts";
import type { RouteSchema } from "../../http/schema/route-schema.ts";
import { embeddingsSchema, modelSchema, modelsSchema } from "./schemas.ts";

/** `POST /v1/embeddings`, `GET /v1/models` and `GET /v1/models/{id}`, as OpenAI's clients expect them. */
export function openaiRoutes(app: FastifyInstance, models: Models): void {
  const embeddings = (): RouteSchema => embeddingsSchema(models);
  app.post("/v1/embeddings", { schema: embeddings(), config: { describe: embeddings } }, async (request, reply) => {
    let wanted!: Embeddings;
    const embedded = await embedTexts(models, request, (body) => (wanted = readEmbeddings(body)));
    return reply.type("application/json").send(embeddingsJson(embedded, wanted.isBase64));
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

interface Embeddings extends TextsToEmbed {
  readonly isBase64: boolean;
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
  const isBase64 = format === "base64";
  return { name: model, texts: input, path: "input", dimensions, user, isJson: !isBase64, isBase64 };
}

function embeddingsJson({ model, vectors, tokens }: Embedded, isBase64: boolean): Buffer {
  const data = vectors.map((vector, index): JsonParts => {
    const head = `{"object":"embedding","index":${index},"embedding":`;
    return isBase64 ? [`${head}"${base64Of(vector)}"}`] : [head, vector, "}"];
  });
  const usage = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return jsonBytes([
    `{"object":"list","data":[`,
    ...commaSeparated(data),
    `],"model":${JSON.stringify(model.name)},"usage":${usage}}`,
  ]);
}
