import { priorities } from "sheaf/adapters/http";
import { Type, type OptionalSchema, type Schema } from "../../http/schema/json-schema.ts";
import { count, json, problemResponses, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import type { ModelInput, ModelOutput, TensorSpec } from "../../runners/contract/model-spec.ts";
import { largestFloat32 } from "../codec/inputs.ts";
import { elements, type Element } from "../../runners/tensors/elements.ts";
import { embedsTexts } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Settings } from "../../settings/settings.ts";

const ms = (description: string): Schema =>
  Type.Number({ minimum: 0, description: `${description}, in milliseconds.` });

export const inferenceHeaders = ({ requestTimeoutMs }: Settings): Schema =>
  Type.Object({
    "x-sheaf-priority": Type.Optional(Type.Union(priorities.map((priority) => Type.Literal(priority)))),
    "x-request-timeout-ms": Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: requestTimeoutMs,
        description: "Longest wait, in milliseconds; at most and by default REQUEST_TIMEOUT_MS.",
      }),
    ),
    "x-request-id": Type.Optional(text("1 to 128 visible ASCII characters; made up where absent.")),
    traceparent: Type.Optional(text("W3C trace context; its trace id is in the log.")),
  });

/** The name of a model in a path or a body, of those that can be meant. */
export function modelName(models: readonly { readonly name: string }[], description: string): Schema {
  return models.length === 0 ? text(description) : Type.String({ enum: models.map(({ name }) => name), description });
}

export const textItem = (maxTextChars: number): Schema => Type.String({ minLength: 1, maxLength: maxTextChars });

/** The schema of one item of a model. */
function itemSchema(input: ModelInput, { maxTextChars }: Settings): Schema {
  switch (input.kind) {
    case "text":
      return textItem(maxTextChars);
    case "text-pair":
      return Type.Object(
        { query: textItem(maxTextChars), text: textItem(maxTextChars) },
        { additionalProperties: false },
      );
    case "floats":
      return Type.Array(Type.Number({ minimum: -largestFloat32, maximum: largestFloat32 }), {
        minItems: input.length,
        maxItems: input.length,
      });
    case "tensors": {
      const named = Type.Object(
        Object.fromEntries(input.tensors.map((tensor) => [tensor.name, tensorSchema(tensor)])),
        {
          additionalProperties: false,
        },
      );
      return input.tensors.length === 1 ? Type.Union([tensorSchema(input.tensors[0]!), named]) : named;
    }
    case "json":
      return Type.Unknown({ description: "An input of the model; GET /v1/models describes it in words." });
  }
}

/** Nested arrays of a tensor's elements. */
function tensorSchema({ shape, datatype, isJson }: TensorSpec): Schema {
  if (isJson === true) return Type.Unknown({ description: "Any JSON value." });
  const element = datatype === "BYTES" ? Type.String() : elementSchema(elements[datatype]);
  return shape.reduceRight<Schema>(
    (inner, length) => Type.Array(inner, { minItems: length ?? 1, ...(length === null ? {} : { maxItems: length }) }),
    element,
  );
}

function elementSchema({ datatype, isWhole, minimum, maximum }: Element): Schema {
  if (datatype === "BOOL") return Type.Boolean();
  return isWhole ? Type.Integer({ minimum, maximum }) : Type.Number({ minimum, maximum });
}

export const nullable = (schema: Schema): OptionalSchema => Type.Optional(Type.Union([schema, Type.Null()]));

const itemError = Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) });
const timing = {
  latency_ms: ms("Arrival to reply"),
  queue_ms: ms("Arrival to the start of its batch; of several the longest"),
  run_ms: ms("The run of its batch; of several the longest"),
  batch_size: count("Items in the batch it ran in, 0 from the cache; of several the largest."),
  request_id: Type.String(),
};

/** An item, bare or as `input`; or several, of which a wrong one has its error in its place. */
function inferBody(models: readonly ServedModel[], { maxInputs, queueMaxSize }: Settings): Schema {
  const items = models.map(({ definition, settings }) => itemSchema(definition.input, settings));
  const item = items.length === 1 ? items[0]! : items.length === 0 ? Type.Unknown() : Type.Union(items);
  const inputs = Type.Array(Type.Unknown(), { minItems: 1, maxItems: Math.min(maxInputs, queueMaxSize) });
  return Type.Union([
    Type.Object({ input: item }, { additionalProperties: false }),
    Type.Object({ inputs }, { additionalProperties: false }),
    item,
  ]);
}

/** `isNamed`: of `/infer/{model}`, else of `/infer`, which only the first model answers. */
export const inferSchema = (models: Models, isNamed: boolean): RouteSchema => ({
  summary: isNamed ? "Run a model" : "Run the first model",
  description:
    'One input, bare (`"text"`, `[0.1, …]`) or as `input`; or several as `inputs`, admitted whole or refused. ' +
    "Of several, a failed or invalid item has its error in its place.",
  tags: ["inference"],
  operationId: isNamed ? "inferModel" : "infer",
  ...(isNamed ? { params: Type.Object({ model: modelName(models.deployments, "Name of a model.") }) } : {}),
  headers: inferenceHeaders(models.settings),
  body: inferBody(isNamed ? models.all : models.unnamed, models.settings),
  response: {
    200: json(
      "The result, or the results in order.",
      Type.Union([
        Type.Object({ model: Type.String(), output: Type.Unknown(), ...timing }),
        Type.Object({
          model: Type.String(),
          outputs: Type.Array(Type.Union([itemError, Type.Unknown()])),
          ...timing,
        }),
      ]),
    ),
    ...problemResponses,
  },
});

/** The lengths that any of these models gives. */
function dimensions(models: readonly ServedModel[]): Schema {
  const outputs = models.map(({ definition }) => definition.output).filter(({ kind }) => kind === "vector") as Vector[];
  const description = "The model's own length, or a shorter one where its folder allows it.";
  if (outputs.length === 0 || outputs.some((output) => output.dimensions === "any"))
    return Type.Integer({ minimum: 1, maximum: Math.max(1, ...outputs.map(({ length }) => length)), description });
  const lengths = outputs.flatMap(({ length, dimensions: shorter = [] }) => [
    length,
    ...(shorter as readonly number[]).filter((one) => one < length),
  ]);
  return Type.Integer({ enum: [...new Set(lengths)], description });
}

type Vector = ModelOutput & { readonly kind: "vector" };

export const embeddingsSchema = (models: Models): RouteSchema => ({
  summary: "Embed texts, OpenAI's way",
  tags: ["OpenAI"],
  operationId: "createEmbeddings",
  headers: inferenceHeaders(models.settings),
  body: Type.Object(
    {
      model: embeddingModel(models, "Name of a text embedding model."),
      input: oneOrMoreTexts(models.settings),
      encoding_format: nullable(Type.Union([Type.Literal("float"), Type.Literal("base64")])),
      dimensions: vectorLength(models),
      user: nullable(text("Taken and ignored.")),
    },
    { additionalProperties: false },
  ),
  response: {
    200: json(
      "One vector per text, in order.",
      Type.Object({
        object: Type.Literal("list"),
        data: Type.Array(
          Type.Object({
            object: Type.Literal("embedding"),
            index: count("Place of the text."),
            embedding: Type.Union([
              Type.Array(Type.Number()),
              text("Base64 of little-endian float32, with encoding_format base64."),
            ]),
          }),
        ),
        model: Type.String(),
        usage: Type.Object({ prompt_tokens: count("Tokens."), total_tokens: count("The same.") }),
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
  task: Type.Optional(text("embedding, rerank, classification, text, json or tensor; or the word of its definition.")),
  state: text("loading, ready, restarting, unavailable or failed."),
  reason: Type.Optional(text("Why the model is not ready.")),
  max_batch_size: Type.Optional(Type.Number()),
  device: Type.Optional(text("Device that the model runs on: cpu, cuda:0, webgpu …")),
  input: Type.Optional(text("The type of an item; known once the model has been inspected.")),
  sample: Type.Optional(Type.Unknown({ description: "An item that the model takes." })),
  self_test: Type.Optional(
    text("Results alone against in batches: independent, slightly-dependent, dependent or not-deterministic."),
  ),
  note: Type.Optional(Type.String()),
});

export const modelSchema = (models: Models): RouteSchema => ({
  summary: "Describe a model",
  tags: ["OpenAI"],
  operationId: "retrieveModel",
  params: Type.Object({ id: modelName(models.deployments, "Name of a model; a slash in it is written %2F.") }),
  response: { 200: json("The model.", model), 404: problemResponses[404] },
});

export const modelsSchema: RouteSchema = {
  summary: "List the models",
  tags: ["OpenAI"],
  operationId: "listModels",
  response: {
    200: json(
      "The models, in the order they were named; the first answers /infer.",
      Type.Object({
        object: Type.Literal("list"),
        data: Type.Array(model),
      }),
    ),
  },
};

/** The body of a route that takes these fields; null stands for any field that is not given. */
export const knownFields = (properties: Readonly<Record<string, Schema | OptionalSchema>>): Schema =>
  Type.Object(properties, { additionalProperties: Type.Null() });

/** Fields that are taken and change nothing. */
export const ignored = (keys: readonly string[]): Record<string, OptionalSchema> =>
  Object.fromEntries(keys.map((key) => [key, Type.Optional({ description: "Taken and ignored." })]));

/** The fields of TEI's routes about texts of too many tokens. */
export const truncationFields: Readonly<Record<"truncate" | "truncation_direction", OptionalSchema>> = {
  truncate: nullable(
    Type.Boolean({ default: true, description: "false refuses a text of more tokens than the model takes." }),
  ),
  truncation_direction: nullable(
    Type.String({
      enum: ["right", "Right"],
      description: "Texts are cut at their end; no other direction is supported.",
    }),
  ),
};

/** One text, or several. */
export const oneOrMoreTexts = ({ maxTextChars, maxInputs }: Settings): Schema =>
  Type.Union([textItem(maxTextChars), Type.Array(textItem(maxTextChars), { minItems: 1, maxItems: maxInputs })]);

const embedding = (models: Models): readonly ServedModel[] =>
  models.all.filter(({ definition }) => embedsTexts(definition));

/** The name of a text embedding model. */
export const embeddingModel = (models: Models, description = "Default: the first model that embeds texts."): Schema =>
  modelName(embedding(models), description);

/** The lengths of vectors that can be asked for. */
export const vectorLength = (models: Models): OptionalSchema => nullable(dimensions(embedding(models)));

/** A vector of a reply. */
export const vectorJson: Schema = Type.Array(Type.Number());
