import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallOptions } from "sheaf";
import { callOptionsOf } from "../call-options.ts";
import { commaSeparated, jsonBytes, type JsonParts } from "../json-bytes.ts";
import { logProblem } from "../log.ts";
import type { ServedModel } from "../served-model.ts";
import type { Models } from "../models.ts";
import { describe, Problem, problemOf } from "../problem.ts";
import { problemFor, sendProblem } from "../replies.ts";
import { headerLength, takeBinary } from "./binary-body.ts";
import { readInputs, readOutputs, splitBody, withParameters } from "./kserve-request.ts";
import {
  inferV2Schema,
  liveV2Schema,
  modelReadyV2Schema,
  modelV2Schema,
  readyV2Schema,
  serverV2Schema,
} from "./kserve-schemas.ts";
import {
  inputTensors,
  itemsOf,
  metadataShape,
  outputTensors,
  resultTensor,
  type ProtocolTensor,
  type TensorValue,
} from "./model-tensors.ts";
import { bytesOf, jsonOfData, malformed } from "./tensor-data.ts";
import { packageVersion } from "../version.ts";

/**
 * The Open Inference Protocol (KServe v2) for every model, with the binary tensor extension:
 * https://github.com/kserve/open-inference-protocol and Triton's extension_binary_data. Rows of the batch axis are items.
 */
export async function kserveRoutes(app: FastifyInstance, models: Models): Promise<void> {
  await app.register(async (v2) => {
    takeBinary(v2);
    v2.setErrorHandler((error, request, reply) => {
      const problem = problemOf(error);
      logProblem(request, problem);
      sendProblem(reply, problem);
    });
    v2.get("/v2", { schema: serverV2Schema }, () => ({
      name: "sheaf",
      version: packageVersion(),
      extensions: ["binary_tensor_data"],
    }));
    v2.get("/v2/health/live", { schema: liveV2Schema, logLevel: "warn" }, () => ({ live: true }));
    v2.get("/v2/health/ready", { schema: readyV2Schema, logLevel: "warn" }, (_request, reply) => {
      const ready = models.status === "ok";
      return reply.code(ready ? 200 : 503).send({ ready });
    });
    const tensors = new Map(models.all.map((model) => [model, tensorsOf(model)]));
    for (const versioned of [false, true]) {
      const path = versioned ? "/v2/models/:model/versions/:version" : "/v2/models/:model";
      v2.get(path, { schema: modelV2Schema(versioned) }, (request) => {
        const model = models.find(nameOf(request), "model");
        return metadataOf(model, tensors.get(model)!);
      });
      v2.get(`${path}/ready`, { schema: modelReadyV2Schema(versioned), logLevel: "warn" }, (request, reply) => {
        const { name, state } = models.find(nameOf(request), "model");
        const ready = state === "ready" && !models.isDraining;
        return reply.code(ready ? 200 : 503).send({ name, ready });
      });
      v2.post(`${path}/infer`, { schema: inferV2Schema(versioned) }, (request, reply) => {
        const model = models.take(nameOf(request), "model");
        return infer(model, tensors.get(model)!, request, reply);
      });
    }
  });
}

interface Tensors {
  readonly inputs: readonly ProtocolTensor[];
  readonly outputs: readonly ProtocolTensor[];
}

const tensorsOf = ({ definition: { input, output } }: ServedModel): Tensors => ({
  inputs: inputTensors(input),
  outputs: outputTensors(output),
});

/** The name in the path. @throws {Problem} 404 for a version other than "1", the only one there is. */
function nameOf(request: FastifyRequest): string {
  const { model, version = "1" } = request.params as { readonly model: string; readonly version?: string };
  if (version === "1") return model;
  const message = `${model.slice(0, 100)} has no version ${JSON.stringify(version.slice(0, 100))}; there is "1".`;
  throw new Problem("MODEL_NOT_FOUND", message, { param: "version" });
}

function metadataOf({ name, definition: { note } }: ServedModel, { inputs, outputs }: Tensors): object {
  const described = (tensors: readonly ProtocolTensor[]): object[] =>
    tensors.map((tensor) => ({ name: tensor.name, datatype: tensor.datatype, shape: metadataShape(tensor) }));
  return {
    name,
    versions: ["1"],
    platform: "sheaf",
    inputs: described(inputs),
    outputs: described(outputs),
    ...(note === undefined ? {} : { parameters: { note } }),
  };
}

async function infer(
  model: ServedModel,
  tensors: Tensors,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { definition } = model;
  const { header, binary } = splitBody(request);
  const { values, count } = readInputs(header["inputs"], binary, tensors.inputs, model);
  const wanted = readOutputs(header, tensors.outputs);
  const { id } = header;
  if (id !== undefined && typeof id !== "string") throw malformed(`id must be a text, got ${describe(id)}.`);
  const { requestTimeoutMs } = model.settings;
  const options = withParameters(callOptionsOf(request, model.settings), header["parameters"], requestTimeoutMs);
  const results = await run(model, itemsOf(definition.input, values, count, model.parse), options);
  const outputs = wanted.map(({ tensor, isBinary }) => ({
    value: resultTensor(definition.output, tensor, results),
    isBinary,
  }));
  return sendOutputs(reply, { model: model.name, id, outputs });
}

/** Every item's result. @throws {Problem} of the first that failed. */
async function run(model: ServedModel, items: readonly unknown[], options: CallOptions): Promise<unknown[]> {
  try {
    // One item needs none of the bookkeeping of a list.
    if (items.length === 1) return [(await model.infer(items[0], options)).output];
    return (await model.inferAll(items, options)).map((outcome) => {
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value.output;
    });
  } catch (error) {
    throw problemFor(error, model);
  }
}

function sendOutputs(
  reply: FastifyReply,
  {
    model,
    id,
    outputs,
  }: { model: string; id: string | undefined; outputs: readonly { value: TensorValue; isBinary: boolean }[] },
): FastifyReply {
  const binary: Buffer[] = [];
  const described = outputs.map(({ value, isBinary }): JsonParts => {
    const head = `{"name":${JSON.stringify(value.name)},"datatype":"${value.datatype}","shape":[${value.shape.join()}]`;
    if (!isBinary) return [`${head},"data":`, jsonOfData(value.data, value.datatype), "}"];
    const bytes = bytesOf(value.data);
    binary.push(bytes);
    return [`${head},"parameters":{"binary_data_size":${bytes.length}}}`];
  });
  const idJson = id === undefined ? "" : `"id":${JSON.stringify(id)},`;
  const json = jsonBytes([
    `{"model_name":${JSON.stringify(model)},"model_version":"1",${idJson}"outputs":[`,
    ...commaSeparated(described),
    "]}",
  ]);
  if (binary.length === 0) return reply.type("application/json").send(json);
  return reply
    .type("application/octet-stream")
    .header(headerLength, String(json.length))
    .send(Buffer.concat([json, ...binary]));
}
