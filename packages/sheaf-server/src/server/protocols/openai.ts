import type { FastifyInstance } from "fastify";
import { describeInput, takesJson } from "../codec/inputs.ts";
import { base64Of, commaSeparated, type JsonParts } from "../codec/json-bytes.ts";
import { isQuantized, quantized, quantizedTypes, type QuantizedType } from "../codec/quantize.ts";
import { embedsTexts, type ModelDefinition } from "../contract/model-definition.ts";
import type { Deployment } from "../models/deployment.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { modelHead } from "../contract/model-head.ts";
import {
  embeddingModel,
  embedTexts,
  oneOrMoreTexts,
  vectorLength,
  type Embedded,
  type TextsToEmbed,
} from "./embed-texts.ts";
import { inputType, task } from "./prompts.ts";
import {
  anyText,
  closedObject,
  field,
  kindOf,
  modelParameter,
  oneOf,
  priority,
  required,
  trueOrFalse,
} from "./fields.ts";
import { sendJson } from "./send-json.ts";
import { truncateSideOrNot } from "./truncation.ts";
import { invalid } from "../../problems/problem.ts";
import { inferenceHeaders } from "../../http/call-options.ts";
import { Type } from "../../http/schema/json-schema.ts";
import { count, described, json, problemResponses, text, type RouteSchema } from "../../http/schema/route-schema.ts";

/** `POST /v1/embeddings`, `GET /v1/models` and `GET /v1/models/{id}`, as OpenAI's clients expect them. */
export function openaiRoutes(app: FastifyInstance, models: Models): void {
  app.post(
    "/v1/embeddings",
    described(() => embeddingsSchema(models)),
    async ({ id }, reply) => {
      let wanted!: Embeddings;
      const embedded = await embedTexts(models, reply, (body) => (wanted = readEmbeddings(body)));
      return sendJson(reply, embeddingsJson(id, embedded, wanted), models.settings);
    },
  );

  const shown = ({ name, current, state, reason }: Deployment): object => ({
    ...modelHead(name),
    ...(current === undefined ? {} : descriptionOf(current)),
    state,
    ...(reason === undefined ? {} : { reason }),
  });
  app.get("/v1/models", { schema: modelsSchema }, () => ({ object: "list", data: models.deployments.map(shown) }));
  app.get(
    "/v1/models/:id",
    described(() => modelSchema(models)),
    (request) => shown(models.find((request.params as { readonly id: string }).id, "id")),
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

function taskOf(definition: Pick<ModelDefinition, "input" | "output">): string {
  const { input, output } = definition;
  if (input.kind === "text-pair" && output.kind === "score") return "rerank";
  if (embedsTexts(definition)) return "embedding";
  if (output.kind === "labels") return "classification";
  if (takesJson(input) || output.kind === "json") return "json";
  return input.kind === "text" || output.kind === "text" ? "text" : "tensor";
}

const encoding = oneOf("float", "base64");
const outputType = oneOf("float", ...quantizedTypes);

/** OpenAI's fields, with the additions of Jina, NVIDIA and vLLM. */
const embeddingsBody = closedObject("an object with input", {
  model: embeddingModel,
  input: required(oneOrMoreTexts),
  encoding_format: field(encoding, "Encoding of the vectors. Default: float."),
  embedding_type: field(
    oneOf("float", "base64", ...quantizedTypes),
    "Jina's name for encoding_format and output_dtype.",
  ),
  output_dtype: field(outputType, "Type of the numbers, as Voyage and Mistral name it. Default: float."),
  dimensions: vectorLength,
  output_dimension: vectorLength,
  input_type: inputType,
  task,
  normalized: field(
    trueOrFalse,
    "Normalize the vectors to length 1; false, the default, returns them as the model outputs them.",
  ),
  late_chunking: field(
    kindOf("false: each text has a vector of its own", (value) => value === false, Type.Boolean({ enum: [false] })),
    "Each text has a vector of its own.",
  ),
  truncate: truncateSideOrNot,
  truncation: field(trueOrFalse, "Voyage's name for truncate."),
  user: field(anyText, "Name of the tenant if TENANT_BY=user."),
  priority,
});

interface Embeddings extends TextsToEmbed {
  readonly isBase64: boolean;
  /** @default float32 */
  readonly type: QuantizedType | undefined;
}

function readEmbeddings(body: unknown): Embeddings {
  const wanted = embeddingsBody.read(body, "");
  const {
    model,
    input,
    encoding_format,
    embedding_type,
    output_dtype,
    dimensions,
    output_dimension,
    input_type,
    task,
    normalized,
    truncate,
    truncation,
    user,
    priority,
  } = wanted;
  const isTypeOfJina = isQuantized(embedding_type);
  if (encoding_format !== undefined && !isTypeOfJina && (embedding_type ?? encoding_format) !== encoding_format)
    throw invalid("embedding_type", `"${encoding_format}", as encoding_format is`, embedding_type);
  if (isTypeOfJina && (output_dtype ?? embedding_type) !== embedding_type)
    throw invalid("output_dtype", `"${embedding_type}", as embedding_type is`, output_dtype);
  if (dimensions !== undefined && (output_dimension ?? dimensions) !== dimensions)
    throw invalid("output_dimension", `${JSON.stringify(dimensions)}, as dimensions is`, output_dimension);
  if (input_type !== undefined && (task ?? input_type) !== input_type)
    throw invalid("task", `"${input_type}", as input_type is`, task);
  if (truncate !== undefined && (truncation ?? truncate) !== truncate)
    throw invalid("truncation", `absent, or ${JSON.stringify(truncate)}, as truncate is`, truncation);
  const isBase64 = (encoding_format ?? embedding_type) === "base64";
  const type = isTypeOfJina ? embedding_type : isQuantized(output_dtype) ? output_dtype : undefined;
  const prompt =
    input_type === undefined ? { path: "task", inputType: task } : { path: "input_type", inputType: input_type };
  return {
    name: model,
    texts: input,
    path: "input",
    ...(dimensions === undefined && output_dimension !== undefined
      ? { dimensions: output_dimension, dimensionsPath: "output_dimension" }
      : { dimensions }),
    prompt,
    user,
    truncate: truncate ?? truncation,
    priority,
    isUnit: normalized === true,
    isJson: !isBase64 && type === undefined,
    ...(type !== undefined && {
      quantizedAs: { path: isTypeOfJina ? "embedding_type" : "output_dtype", types: [type] },
    }),
    isBase64,
    type,
  };
}

function embeddingsJson(
  id: string,
  { model, vectors, ranges, tokens }: Embedded,
  { isBase64, type }: Embeddings,
): JsonParts {
  const data = vectors.map((vector, index): JsonParts => {
    const head = `{"object":"embedding","index":${index},"embedding":`;
    const numbers = type === undefined ? vector : quantized(vector, type, ranges);
    if (isBase64) return [`${head}"${base64Of(numbers)}"}`];
    return numbers instanceof Float32Array ? [head, numbers, "}"] : [`${head}[${numbers.join()}]}`];
  });
  const usage = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return [
    `{"object":"list","id":${JSON.stringify(id)},"data":[`,
    ...commaSeparated(data),
    `],"model":${JSON.stringify(model.name)},"usage":${usage}}`,
  ];
}

const embeddingsSchema = (models: Models): RouteSchema => ({
  summary: "Embed texts (OpenAI)",
  tags: ["OpenAI"],
  operationId: "createEmbeddings",
  headers: inferenceHeaders(models.settings),
  body: embeddingsBody.schema(models),
  response: {
    200: json(
      "One vector per text, in order.",
      Type.Object({
        object: Type.Literal("list"),
        id: text("The request's id."),
        data: Type.Array(
          Type.Object({
            object: Type.Literal("embedding"),
            index: count("Index of the text."),
            embedding: Type.Union([
              Type.Array(Type.Number()),
              text(
                "Base64 of little-endian float32, or of the bytes of another output_dtype, with encoding_format base64.",
              ),
            ]),
          }),
        ),
        model: Type.String(),
        usage: Type.Object({
          prompt_tokens: count("Number of tokens."),
          total_tokens: count("Equal to prompt_tokens."),
        }),
      }),
    ),
    ...problemResponses,
  },
});

const model = Type.Object({
  id: Type.String(),
  object: Type.Literal("model"),
  created: Type.Integer(),
  owned_by: Type.String(),
  task: Type.Optional(
    text("embedding, rerank, classification, text, json, tensor, or the task of the model's own definition."),
  ),
  state: text("loading, ready, restarting, unavailable or failed."),
  reason: Type.Optional(text("Why the model is not ready.")),
  max_batch_size: Type.Optional(Type.Number()),
  device: Type.Optional(text("Device that the model runs on: cpu, cuda:0, webgpu …")),
  input: Type.Optional(text("Description of an input; absent until the model has been inspected.")),
  sample: Type.Optional(Type.Unknown({ description: "A valid input." })),
  self_test: Type.Optional(
    text("Whether results depend on the batch: independent, slightly-dependent, dependent or not-deterministic."),
  ),
  note: Type.Optional(Type.String()),
});

const modelSchema = (models: Models): RouteSchema => ({
  summary: "Describe a model",
  tags: ["OpenAI"],
  operationId: "retrieveModel",
  params: Type.Object({ id: modelParameter(models, "Name of a model; encode a slash as %2F.") }),
  response: { 200: json("The model.", model), 404: problemResponses[404] },
});

const modelsSchema: RouteSchema = {
  summary: "List the models",
  tags: ["OpenAI"],
  operationId: "listModels",
  response: {
    200: json(
      "The models in the order of the command line; the first answers /infer.",
      Type.Object({
        object: Type.Literal("list"),
        data: Type.Array(model),
      }),
    ),
  },
};
