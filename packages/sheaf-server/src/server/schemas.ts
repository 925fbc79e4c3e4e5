import { Type, type TObject, type TSchema } from "typebox";

/** A route as OpenAPI shows it. Bodies are checked by hand (`inputs.ts`), with better messages than a schema gives. */
export interface RouteSchema {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly operationId: string;
  readonly params?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly response: Readonly<Record<number, unknown>>;
  readonly produces?: readonly string[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

const text = (description: string): TSchema => Type.String({ description });
const count = (description: string): TSchema => Type.Integer({ minimum: 0, description });
const ms = (description: string): TSchema =>
  Type.Number({ minimum: 0, description: `${description}, in milliseconds.` });

const problem = Type.Object(
  {
    type: text("urn:sheaf:error: and the code."),
    title: text("The status in words."),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: text("What is wrong and what to do."),
    request_id: text("Also in the header x-request-id and in the log."),
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "Path of the wrong value." }),
      code: Type.String(),
    }),
  },
  { description: "A problem document (RFC 9457) and OpenAI's error in one." },
);

const problems: Readonly<Record<number, string>> = {
  400: "Not JSON.",
  401: "The key is missing or wrong.",
  404: "No such model.",
  413: "The body is too large.",
  415: "The body is not application/json in UTF-8, uncompressed.",
  422: "A wrong value: path, what was expected, what was there.",
  429: "The queue is full; see the headers retry-after and retry-after-ms.",
  500: "The model failed.",
  502: "The item was given up: every worker that took it ended; see the id in the message.",
  503: "Warming up, shutting down, or no worker is alive.",
  504: "The deadline passed, or the run took too long.",
};

const problemResponses: Readonly<Record<number, unknown>> = Object.fromEntries(
  Object.entries(problems).map(([status, description]) => [
    status,
    { description, content: { "application/problem+json": { schema: problem } } },
  ]),
);

export const json = (description: string, schema: TSchema): object => ({
  description,
  content: { "application/json": { schema } },
});

export const inferenceHeaders: TObject = Type.Object({
  "x-sheaf-priority": Type.Optional(
    Type.Union([Type.Literal("immediate"), Type.Literal("interactive"), Type.Literal("bulk")]),
  ),
  "x-request-timeout-ms": Type.Optional(ms("Longest wait, at most REQUEST_TIMEOUT_MS")),
  "x-request-id": Type.Optional(text("1 to 128 visible ASCII characters; made up where absent.")),
  traceparent: Type.Optional(text("W3C trace context; its trace id stands in the log.")),
});

const itemValue = Type.Unknown({
  description: "One item: a text, an array of numbers, or what GET /v1/models says of the model.",
});
const itemError = Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) });
const timing = {
  latency_ms: ms("Arrival to reply"),
  queue_ms: ms("Arrival to the start of its batch; of several the longest"),
  batch_size: count("Items in the batch it ran in; of several the largest."),
  request_id: Type.String(),
};

export const inferSchema = (isNamed: boolean): RouteSchema => ({
  summary: isNamed ? "Run a model" : "Run the first model",
  description:
    'One input, bare (`"text"`, `[0.1, …]`) or as `input`; or several as `inputs`, admitted whole or refused. ' +
    "Of several, a failed or invalid item has its error in its place.",
  tags: ["inference"],
  operationId: isNamed ? "inferModel" : "infer",
  ...(isNamed ? { params: Type.Object({ model: text("Name of a model.") }) } : {}),
  headers: inferenceHeaders,
  body: Type.Union([
    Type.Object({ input: itemValue }, { additionalProperties: false }),
    Type.Object({ inputs: Type.Array(itemValue, { minItems: 1 }) }, { additionalProperties: false }),
    itemValue,
  ]),
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

export const embeddingsSchema: RouteSchema = {
  summary: "Embed texts, OpenAI's way",
  tags: ["OpenAI"],
  operationId: "createEmbeddings",
  headers: inferenceHeaders,
  body: Type.Object(
    {
      model: text("Name of a text embedding model."),
      input: Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })]),
      encoding_format: Type.Optional(Type.Union([Type.Literal("float"), Type.Literal("base64")])),
      dimensions: Type.Optional(
        Type.Integer({ minimum: 1, description: "The model's own length, or a shorter one where it allows it." }),
      ),
      user: Type.Optional(text("Taken and ignored.")),
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
};

export const rerankSchema: RouteSchema = {
  summary: "Rank texts by how well they answer a query",
  description: "By a cross-encoder's score, or by the cosine of the vectors of a text embedding model.",
  tags: ["inference"],
  operationId: "rerank",
  headers: inferenceHeaders,
  body: Type.Object(
    {
      query: Type.String({ minLength: 1 }),
      texts: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
      model: Type.Optional(text("Default: the first model that can rank.")),
      raw_scores: Type.Optional(
        Type.Boolean({ default: false, description: "A cross-encoder's logits, instead of scores from 0 to 1." }),
      ),
      truncate: Type.Optional(
        Type.Boolean({ default: true, description: "false refuses a text of more tokens than the model takes." }),
      ),
      return_text: Type.Optional(Type.Boolean({ default: false, description: "Each text beside its score." })),
    },
    { additionalProperties: false },
  ),
  response: {
    200: json(
      "The best first; index is the place in texts.",
      Type.Array(
        Type.Object({
          index: count("Place in texts."),
          text: Type.Optional(text("With return_text.")),
          score: Type.Number(),
        }),
      ),
    ),
    ...problemResponses,
  },
};

const model = Type.Object({
  id: Type.String(),
  object: Type.Literal("model"),
  created: Type.Integer(),
  owned_by: Type.String(),
  task: Type.String(),
  state: Type.String(),
  max_batch_size: Type.Number(),
  input: text("What an item is."),
  self_test: Type.Optional(
    text("Results alone against in batches: independent, slightly-dependent, dependent or not-deterministic."),
  ),
  note: Type.Optional(Type.String()),
});

export const modelSchema: RouteSchema = {
  summary: "Describe a model",
  tags: ["OpenAI"],
  operationId: "retrieveModel",
  params: Type.Object({ id: text("Name of a model; a slash in it is written %2F.") }),
  response: { 200: json("The model.", model), 401: problemResponses[401], 404: problemResponses[404] },
};

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
    401: problemResponses[401],
  },
};

const health = Type.Object({
  status: text("ok, warming, restarting, unavailable, draining or failed."),
  models: Type.Array(Type.Object({ name: Type.String(), state: Type.String(), reason: Type.Optional(Type.String()) })),
});

export const liveSchema: RouteSchema = {
  summary: "Whether the process answers",
  tags: ["health"],
  operationId: "live",
  security: [],
  response: { 200: json("It does.", Type.Object({ status: Type.Literal("ok") })) },
};

export const healthSchema: RouteSchema = {
  summary: "Whether requests are served",
  tags: ["health"],
  operationId: "ready",
  security: [],
  response: { 200: json("Every model is ready.", health), 503: json("Not yet, or no longer.", health) },
};

export const metricsSchema: RouteSchema = {
  summary: "Prometheus metrics",
  tags: ["observation"],
  operationId: "metrics",
  response: {
    200: { description: "Text format 0.0.4.", content: { "text/plain": { schema: Type.String() } } },
    401: problemResponses[401],
  },
};
