import { Type, type Schema } from "../../../http/schema/json-schema.ts";
import type { Models } from "../../models/models.ts";
import { json, problems, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { inferenceHeaders } from "../../../http/call-options.ts";
import { closedObject, modelParameter, optional, trueOrFalse, type Kind } from "../fields.ts";
import { versionOf } from "./model.ts";
import { dataSchema, requestSchema } from "./request.ts";

export const tags: readonly string[] = ["Open Inference Protocol"];
/** Of which routes: those with a version in their path, or those without. */
export interface Path {
  readonly models: Models;
  readonly versioned: boolean;
}
const paramsOf = ({ models, versioned }: Path): Schema => {
  const model = modelParameter(models);
  const versions = [...new Set(models.all.map(versionOf))];
  const version = Type.String({
    ...(versions.length === 0 ? {} : { enum: versions }),
    description: "The serving version; 1 for models without versions.",
  });
  return versioned ? Type.Object({ model, version }) : Type.Object({ model });
};
/** Operation ids must be unique. */
const named = (operationId: string, { versioned }: Path): string => (versioned ? `${operationId}Version` : operationId);
export const error: Schema = Type.Object({ error: Type.String() });
export const errors: Readonly<Record<number, unknown>> = Object.fromEntries(
  Object.entries({
    ...problems,
    400: "The request violates the protocol: invalid JSON, length, name or datatype.",
    415: "The body is neither application/json nor application/octet-stream.",
    422: "The model does not accept a shape or a value.",
  }).map(([status, description]) => [status, json(description, error)]),
);
const unknownOrUnready = { 404: errors[404], 503: errors[503] };

const tensorFields = {
  name: Type.String(),
  datatype: Type.String({ description: "FP32, INT64, BYTES …" }),
  shape: Type.Array(Type.Integer(), { description: "Lengths of the axes; -1 accepts any length." }),
};
const configTensor = Type.Object({
  name: Type.String(),
  data_type: Type.String({ description: "TYPE_FP32, TYPE_INT64, TYPE_STRING …" }),
  dims: Type.Array(Type.Integer(), { description: "Lengths of the axes; -1 accepts any length." }),
});
const metadataTensor = Type.Object(tensorFields);
const outputTensor = Type.Object({
  ...tensorFields,
  parameters: Type.Optional(Type.Object({ binary_data_size: Type.Integer({ minimum: 0 }) })),
  data: Type.Optional(dataSchema),
});
const route = (operationId: string, summary: string, response: Schema, description = "OK"): RouteSchema => ({
  summary,
  tags,
  operationId,
  response: { 200: json(description, response) },
});
const modelRoute = (
  path: Path,
  operationId: string,
  summary: string,
  response: RouteSchema["response"],
): RouteSchema => ({ summary, tags, operationId: named(operationId, path), params: paramsOf(path), response });
const open = { security: [] };

export const server: RouteSchema = route(
  "serverMetadata",
  "Show the server's name and extensions",
  Type.Object({ name: Type.String(), version: Type.String(), extensions: Type.Array(Type.String()) }),
);
export const live: RouteSchema = {
  ...route("serverLive", "Check that the process is alive", Type.Object({ live: Type.Boolean() })),
  ...open,
};
const readiness = Type.Object({ ready: Type.Boolean() });
export const ready: RouteSchema = {
  ...route("serverReady", "Check that every model is ready", readiness),
  ...open,
  response: {
    200: json("Every model is ready.", readiness),
    503: json("A model is loading or failed, or the server is draining.", readiness),
  },
};
const modelReadiness = Type.Object({ name: Type.String(), ready: Type.Boolean() });
export const modelReady = (path: Path): RouteSchema =>
  modelRoute(path, "modelReady", "Check that a model is ready", {
    200: json("The model is ready.", modelReadiness),
    404: errors[404],
    503: json("The model is not ready.", modelReadiness),
  });
export const model = (path: Path): RouteSchema =>
  modelRoute(path, "modelMetadata", "List a model's tensors", {
    200: json(
      "The inputs and outputs; axis 0 is the batch axis.",
      Type.Object({
        name: Type.String(),
        versions: Type.Array(Type.String()),
        platform: Type.String(),
        inputs: Type.Array(metadataTensor),
        outputs: Type.Array(metadataTensor),
        parameters: Type.Optional(Type.Object({ note: Type.String() })),
      }),
    ),
    ...unknownOrUnready,
  });

export const config = (path: Path): RouteSchema => ({
  description: "Follows Triton's model configuration extension, for clients such as perf_analyzer.",
  ...modelRoute(path, "modelConfig", "Show a model's configuration", {
    200: json(
      "The fields of Triton's ModelConfig that apply here; dims are those of one item.",
      Type.Object({
        name: Type.String(),
        platform: Type.String(),
        backend: Type.String(),
        max_batch_size: Type.Integer({ minimum: 0, description: "0 if the first axis is not a batch axis." }),
        input: Type.Array(configTensor),
        output: Type.Array(configTensor),
      }),
    ),
    ...unknownOrUnready,
  }),
});

const duration = Type.Object({ count: Type.Integer({ minimum: 0 }), ns: Type.Integer({ minimum: 0 }) });
const computed = { compute_input: duration, compute_infer: duration, compute_output: duration };
const countsAndTimes = "Counts and times since the start; follows Triton's statistics extension.";
const modelStatistics = Type.Object({
  model_stats: Type.Array(
    Type.Object({
      name: Type.String(),
      version: Type.String(),
      last_inference: Type.Integer({
        minimum: 0,
        description: "Time of the last request in Unix milliseconds; 0 before the first.",
      }),
      inference_count: Type.Integer({ minimum: 0, description: "Number of items in answered requests." }),
      execution_count: Type.Integer({ minimum: 0, description: "Number of batches." }),
      inference_stats: Type.Object({ success: duration, fail: duration, queue: duration, ...computed }),
      batch_stats: Type.Array(Type.Object({ batch_size: Type.Integer({ minimum: 1 }), ...computed })),
    }),
  ),
});
export const statistics = (path: Path): RouteSchema =>
  modelRoute(path, "modelStatistics", "Show a model's statistics", {
    200: json(countsAndTimes, modelStatistics),
    ...unknownOrUnready,
  });
export const allStatistics: RouteSchema = route(
  "statistics",
  "Show every model's statistics",
  modelStatistics,
  countsAndTimes,
);

export const indexBody: Kind<{ readonly ready: boolean | undefined }> = closedObject("an object", {
  ready: optional(trueOrFalse, "List only models that are ready."),
});

export const index = (models: Models): RouteSchema => ({
  summary: "List the models and their states",
  description: "Follows Triton's model repository extension. The body may be empty.",
  tags,
  operationId: "repositoryIndex",
  body: indexBody.schema(models),
  bodyIsOptional: true,
  response: {
    200: json(
      "The models, in the order of the command line.",
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
    413: errors[413],
    422: errors[422],
  },
});

export const infer = (path: Path): RouteSchema => ({
  description:
    "The rows of axis 0 are items; there may be more of them than fit into a batch. With the header " +
    "Inference-Header-Content-Length the JSON is followed by the bytes of the tensors that have binary_data_size " +
    "(application/octet-stream). Parameters: priority (0 interactive, 1 immediate, 2 bulk), timeout in microseconds, " +
    "binary_data_output.",
  headers: inferenceHeaders(path.models.settings),
  body: requestSchema(path.models),
  ...modelRoute(path, "inferV2", "Run a model on tensors", {
    200: json(
      "The outputs, in the requested order.",
      Type.Object({
        model_name: Type.String(),
        model_version: Type.String(),
        id: Type.Optional(Type.String()),
        outputs: Type.Array(outputTensor),
      }),
    ),
    ...errors,
  }),
});
