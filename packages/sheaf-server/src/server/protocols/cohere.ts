import type { FastifyInstance } from "fastify";
import { inferenceHeaders } from "../../http/call-options.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { count, described, errorResponses, json, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { base64Of, commaSeparated, type JsonParts } from "../codec/json-bytes.ts";
import { objectAt, textSchema } from "../codec/inputs.ts";
import { isQuantized, quantized, quantizedTypes, type QuantizedType } from "../codec/quantize.ts";
import type { VectorRanges } from "../../runners/contract/model-spec.ts";
import { invalid } from "../../problems/problem.ts";
import type { Models } from "../models/models.ts";
import {
  embeddingModel,
  embedTexts,
  severalTexts,
  vectorJson,
  vectorLength,
  type TextsToEmbed,
} from "./embed-texts.ts";
import { inputType } from "./prompts.ts";
import { field, object, priority, readLater, required, someOf, type ValuesOf } from "./fields.ts";
import { sendJson } from "./send-json.ts";
import { truncateSide, warnings } from "./truncation.ts";

/** `POST /v1/embed` and `/v2/embed`, as Cohere's clients send them. */
export function cohereRoutes(app: FastifyInstance, models: Models): void {
  for (const version of [1, 2] as const) {
    app.post(
      `/v${version}/embed`,
      described(() => embedSchema(models, version)),
      async (request, reply) => {
        let wanted!: CohereTexts;
        const { vectors, ranges, tokens, warnings } = await embedTexts(
          models,
          reply,
          (body) => (wanted = readEmbed(body, version)),
        );
        const warned = warnings === undefined ? "" : `,"warnings":${JSON.stringify(warnings)}`;
        const meta = `{"api_version":{"version":"${version}"},"billed_units":{"input_tokens":${tokens}}${warned}}`;
        const parts = [
          `{"id":${JSON.stringify(request.id)},"texts":${JSON.stringify(wanted.texts)},"embeddings":`,
          ...embeddingsJson(vectors, wanted.types, ranges),
          `,"response_type":"${wanted.types === undefined ? "embeddings_floats" : "embeddings_by_type"}","meta":${meta}}`,
        ];
        return sendJson(reply, parts, models.settings);
      },
    );
  }
}

type EmbeddingType = "float" | "base64" | QuantizedType;

const types = someOf<EmbeddingType>("float", "base64", ...quantizedTypes);
const fields = {
  model: embeddingModel,
  input_type: inputType,
  embedding_types: field(types, "Default: float."),
  output_dimension: vectorLength,
  truncate: truncateSide,
  priority,
};
const texts = required(severalTexts);
const embedBodies = {
  1: object("an object with texts", {
    texts,
    ...fields,
    embedding_types: field(types, "Default: plain arrays of numbers."),
  }),
  2: object("an object with texts", { texts, ...fields }),
  /** Of v2, for texts and images. */
  inputs: object("an object with inputs", { inputs: required(readLater(inputsSchema)), ...fields }),
};

function inputsSchema({ settings }: Models): Schema {
  const part = Type.Object({ type: Type.Literal("text"), text: textSchema(settings) });
  const input = Type.Object({ content: Type.Array(part, { minItems: 1, maxItems: 1 }) });
  return Type.Array(input, { minItems: 1, maxItems: settings.maxInputs });
}

/** The only text of each input: vectors of several parts are not supported. */
function textsOf(inputs: unknown): readonly unknown[] {
  if (!Array.isArray(inputs)) throw invalid("inputs", "an array of inputs", inputs);
  return inputs.map((input: unknown, index) => {
    const { content } = objectAt(input, `inputs[${index}]`, "an object with content");
    const path = `inputs[${index}].content`;
    if (!Array.isArray(content) || content.length !== 1) throw invalid(path, "an array of one text", content);
    const { type, text } = objectAt(content[0], `${path}[0]`, 'an object with type "text" and text');
    if (type !== "text") throw invalid(`${path}[0].type`, '"text"', type);
    return text;
  });
}

interface CohereTexts extends TextsToEmbed {
  /** The forms of the vectors, by name in the reply; undefined: bare arrays of numbers. */
  readonly types: readonly EmbeddingType[] | undefined;
}

function readEmbed(body: unknown, version: 1 | 2): CohereTexts {
  const hasInputs =
    version === 2 && typeof body === "object" && body !== null && "inputs" in body && !("texts" in body);
  if (!hasInputs) {
    const { texts, ...rest } = embedBodies[version].read(body, "");
    return embedding(texts, "texts", rest, version);
  }
  const { inputs, ...rest } = embedBodies.inputs.read(body, "");
  return embedding(textsOf(inputs), "inputs", rest, version);
}

function embedding(
  texts: readonly unknown[],
  path: string,
  { model, input_type, embedding_types, output_dimension, truncate, priority }: ValuesOf<typeof fields>,
  version: 1 | 2,
): CohereTexts {
  const types = embedding_types ?? (version === 1 ? undefined : (["float"] as const));
  return {
    name: model,
    texts,
    path,
    dimensions: output_dimension,
    dimensionsPath: "output_dimension",
    prompt: { path: "input_type", inputType: input_type },
    truncate,
    priority,
    isJson: types === undefined || types.includes("float"),
    quantizedAs: { path: "embedding_types", types: (types ?? []).filter(isQuantized) },
    types,
  };
}

const byType = Type.Object({
  float: Type.Optional(Type.Array(vectorJson)),
  base64: Type.Optional(Type.Array(text("Little-endian float32 as base64."))),
  ...Object.fromEntries(quantizedTypes.map((type) => [type, Type.Optional(Type.Array(Type.Array(Type.Integer())))])),
});

const embedSchema = (models: Models, version: 1 | 2): RouteSchema => ({
  summary: `Embed texts, the way of Cohere's API v${version}`,
  tags: ["Cohere"],
  operationId: `cohereEmbedV${version}`,
  headers: inferenceHeaders(models.settings),
  body:
    version === 1
      ? embedBodies[1].schema(models)
      : Type.Union([embedBodies[2].schema(models), embedBodies.inputs.schema(models)]),
  response: {
    200: json(
      "The vectors, in the order of the texts.",
      Type.Object({
        id: text("The request's id."),
        texts: Type.Array(Type.String()),
        embeddings: version === 1 ? Type.Union([Type.Array(vectorJson), byType]) : byType,
        response_type: Type.String({ enum: ["embeddings_floats", "embeddings_by_type"] }),
        meta: Type.Object({
          api_version: Type.Object({ version: Type.String() }),
          billed_units: Type.Object({ input_tokens: count("Number of tokens.") }),
          warnings,
        }),
      }),
    ),
    ...errorResponses("message"),
  },
});

function embeddingsJson(
  vectors: readonly Float32Array[],
  types: readonly EmbeddingType[] | undefined,
  ranges: VectorRanges | undefined,
): JsonParts {
  const floats = (): JsonParts => ["[", ...commaSeparated(vectors.map((vector) => [vector])), "]"];
  if (types === undefined) return floats();
  const named = types.map((type): JsonParts => {
    if (type === "float") return ['"float":', ...floats()];
    if (type === "base64") return [`"base64":${JSON.stringify(vectors.map(base64Of))}`];
    return [`"${type}":[${vectors.map((vector) => `[${quantized(vector, type, ranges).join()}]`).join()}]`];
  });
  return ["{", ...commaSeparated(named), "}"];
}
