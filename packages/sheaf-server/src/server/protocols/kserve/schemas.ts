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
    description: "The version that serves: 1 where a model has no versions of its own.",
  });
  return versioned ? Type.Object({ model, version }) : Type.Object({ model });
};
/** Two routes may not have one name. */
const named = (operationId: string, { versioned }: Path): string => (versioned ? `${operationId}Version` : operationId);
export const error: Schema = Type.Object({ error: Type.String() });
export const errors: Readonly<Record<number, unknown>> = Object.fromEntries(
  Object.entries({
    ...problems,
    400: "Not the protocol: not JSON, a wrong length, a wrong name or datatype.",
    415: "Neither application/json nor application/octet-stream.",
    422: "A shape or a value that the model does not take.",
  }).map(([status, description]) => [status, json(description, error)]),
);
/** Of a route that says something of a model. */
const unknownOrUnready = { 404: errors[404], 503: errors[503] };

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
export const modelReady = (path: Path): RouteSchema =>
  modelRoute(path, "modelReady", "Whether a model is ready", {
    200: json("It is.", modelReadiness),
    404: errors[404],
    503: json("It is not.", modelReadiness),
  });
export const model = (path: Path): RouteSchema =>
  modelRoute(path, "modelMetadata", "Name a model's tensors", {
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
    ...unknownOrUnready,
  });

export const config = (path: Path): RouteSchema => ({
  description: "As Triton's model configuration extension, for clients such as perf_analyzer.",
  ...modelRoute(path, "modelConfig", "Show a model's configuration", {
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
    ...unknownOrUnready,
  }),
});

const duration = Type.Object({ count: Type.Integer({ minimum: 0 }), ns: Type.Integer({ minimum: 0 }) });
const computed = { compute_input: duration, compute_infer: duration, compute_output: duration };
const countsAndTimes = "Counts and times since start, as Triton's statistics extension.";
const modelStatistics = Type.Object({
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
  ready: optional(trueOrFalse, "true: list only models that are ready."),
});

export const index = (models: Models): RouteSchema => ({
  summary: "List the models and their states",
  description: "As Triton's model repository extension. The body may be empty.",
  tags,
  operationId: "repositoryIndex",
  body: indexBody.schema(models),
  bodyIsOptional: true,
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
    413: errors[413],
    422: errors[422],
  },
});

export const infer = (path: Path): RouteSchema => ({
  description:
    "Rows of axis 0 are items and may be more than a batch. With the header Inference-Header-Content-Length the JSON " +
    "is followed by the bytes of tensors that have binary_data_size (application/octet-stream). parameters: priority " +
    "0 interactive, 1 immediate, 2 bulk; timeout in microseconds; binary_data_output.",
  headers: inferenceHeaders(path.models.settings),
  body: requestSchema(path.models),
  ...modelRoute(path, "inferV2", "Run a model on tensors", {
    200: json(
      "The outputs, in the order asked for.",
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
