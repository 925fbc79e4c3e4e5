import { Type, type TSchema } from "typebox";
import { inferenceHeaders, json, type RouteSchema } from "../schemas.ts";

const tags = ["Open Inference Protocol"];
const modelName = Type.String({ description: "Name of a model." });
const paramsOf = (versioned: boolean): TSchema =>
  versioned
    ? Type.Object({ model: modelName, version: Type.String({ description: "There is one version: 1." }) })
    : Type.Object({ model: modelName });
/** Two routes may not have one name. */
const named = (operationId: string, versioned: boolean): string => (versioned ? `${operationId}Version` : operationId);
const error = Type.Object({ error: Type.String() });
const errors: Readonly<Record<number, unknown>> = Object.fromEntries(
  Object.entries({
    400: "Not the protocol: not JSON, a wrong length, a wrong name or datatype.",
    401: "The key is missing or wrong.",
    404: "No such model.",
    415: "Neither application/json nor application/octet-stream.",
    422: "A shape or a value that the model does not take.",
    429: "The queue is full; see the headers retry-after and retry-after-ms.",
    500: "The model failed.",
    503: "Warming up, shutting down, or no worker is alive.",
    504: "The deadline passed, or the run took too long.",
  }).map(([status, description]) => [status, json(description, error)]),
);

const tensorFields = {
  name: Type.String(),
  datatype: Type.String({ description: "FP32, INT64, BYTES …" }),
  shape: Type.Array(Type.Integer(), { description: "-1 where any length goes." }),
};
const configTensor = Type.Object({
  name: Type.String(),
  data_type: Type.String({ description: "TYPE_FP32, TYPE_INT64, TYPE_STRING …" }),
  dims: Type.Array(Type.Integer(), { description: "-1 where any length goes." }),
});
const metadataTensor = Type.Object(tensorFields);
const tensor = Type.Object({
  ...tensorFields,
  parameters: Type.Optional(Type.Object({ binary_data_size: Type.Optional(Type.Integer({ minimum: 0 })) })),
  data: Type.Optional(Type.Array(Type.Unknown(), { description: "In row order, flat or nested." })),
});

const route = (operationId: string, summary: string, response: TSchema): RouteSchema => ({
  summary,
  tags,
  operationId,
  response: { 200: json("OK", response) },
});
const open = { security: [] };

export const server: RouteSchema = route(
  "serverMetadata",
  "Name the server and its extensions",
  Type.Object({ name: Type.String(), version: Type.String(), extensions: Type.Array(Type.String()) }),
);
export const live: RouteSchema = {
  ...route("serverLive", "Whether the process answers", Type.Object({ live: Type.Boolean() })),
  ...open,
};
const readiness = Type.Object({ ready: Type.Boolean() });
export const ready: RouteSchema = {
  ...route("serverReady", "Whether every model is ready", readiness),
  ...open,
  response: { 200: json("Every model is ready.", readiness), 503: json("Not yet, or no longer.", readiness) },
};
const modelReadiness = Type.Object({ name: Type.String(), ready: Type.Boolean() });
export const modelReady = (versioned: boolean): RouteSchema => ({
  ...route(named("modelReady", versioned), "Whether a model is ready", modelReadiness),
  params: paramsOf(versioned),
  response: { 200: json("It is.", modelReadiness), 404: errors[404], 503: json("It is not.", modelReadiness) },
});
export const model = (versioned: boolean): RouteSchema => ({
  ...route(named("modelMetadata", versioned), "Name a model's tensors", Type.Unknown()),
  params: paramsOf(versioned),
  response: {
    200: json(
      "Inputs and outputs; axis 0 counts items.",
      Type.Object({
        name: Type.String(),
        versions: Type.Array(Type.String()),
        platform: Type.String(),
        inputs: Type.Array(metadataTensor),
        outputs: Type.Array(metadataTensor),
        parameters: Type.Optional(Type.Object({ note: Type.String() })),
      }),
    ),
    404: errors[404],
  },
});

export const config = (versioned: boolean): RouteSchema => ({
  summary: "Show a model's configuration",
  description: "As Triton's model configuration extension, for clients such as perf_analyzer.",
  tags,
  operationId: named("modelConfig", versioned),
  params: paramsOf(versioned),
  response: {
    200: json(
      "The fields of Triton's ModelConfig that mean something here; dims are one item's.",
      Type.Object({
        name: Type.String(),
        platform: Type.String(),
        backend: Type.String(),
        max_batch_size: Type.Integer({ minimum: 0, description: "0 where axis 0 is not a batch's." }),
        input: Type.Array(configTensor),
        output: Type.Array(configTensor),
      }),
    ),
    404: errors[404],
  },
});

const duration = Type.Object({ count: Type.Integer({ minimum: 0 }), ns: Type.Integer({ minimum: 0 }) });
const computed = { compute_input: duration, compute_infer: duration, compute_output: duration };
const modelStatistics = json(
  "Counts and times since start, as Triton's statistics extension.",
  Type.Object({
    model_stats: Type.Array(
      Type.Object({
        name: Type.String(),
        version: Type.String(),
        last_inference: Type.Integer({ minimum: 0, description: "In ms since 1970; 0 before the first." }),
        inference_count: Type.Integer({ minimum: 0, description: "Items of answered requests." }),
        execution_count: Type.Integer({ minimum: 0, description: "Batches." }),
        inference_stats: Type.Object({ success: duration, fail: duration, queue: duration, ...computed }),
        batch_stats: Type.Array(Type.Object({ batch_size: Type.Integer({ minimum: 1 }), ...computed })),
      }),
    ),
  }),
);
export const statistics = (versioned: boolean): RouteSchema => ({
  summary: "Show a model's statistics",
  tags,
  operationId: named("modelStatistics", versioned),
  params: paramsOf(versioned),
  response: { 200: modelStatistics, 404: errors[404] },
});
export const allStatistics: RouteSchema = {
  summary: "Show every model's statistics",
  tags,
  operationId: "statistics",
  response: { 200: modelStatistics },
};

export const index: RouteSchema = {
  summary: "List the models and their states",
  description: "As Triton's model repository extension. The body may be empty.",
  tags,
  operationId: "repositoryIndex",
  body: Type.Object(
    { ready: Type.Optional(Type.Boolean({ description: "Only those that are ready." })) },
    { additionalProperties: false },
  ),
  response: {
    200: json(
      "The models, in the order they were named.",
      Type.Array(
        Type.Object({
          name: Type.String(),
          version: Type.String(),
          state: Type.Union(["READY", "LOADING", "UNLOADING", "UNAVAILABLE"].map((state) => Type.Literal(state))),
          reason: Type.String(),
        }),
      ),
    ),
    400: errors[400],
    415: errors[415],
    422: errors[422],
  },
};

export const infer = (versioned: boolean): RouteSchema => ({
  summary: "Run a model on tensors",
  description:
    "Rows of axis 0 are items and may be more than a batch. With the header Inference-Header-Content-Length the JSON " +
    "is followed by the bytes of tensors that have binary_data_size (application/octet-stream). parameters: priority " +
    "0 interactive, 1 immediate, 2 bulk; timeout in microseconds; binary_data_output.",
  tags,
  operationId: named("inferV2", versioned),
  params: paramsOf(versioned),
  headers: inferenceHeaders,
  body: Type.Object({
    id: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Object({})),
    inputs: Type.Array(tensor),
    outputs: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), parameters: Type.Optional(Type.Object({})) })),
    ),
  }),
  response: {
    200: json(
      "The outputs, in the order asked for.",
      Type.Object({
        model_name: Type.String(),
        model_version: Type.String(),
        id: Type.Optional(Type.String()),
        outputs: Type.Array(tensor),
      }),
    ),
    ...errors,
  },
});
