import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallOptions, Priority } from "sheaf";
import { jsonOf } from "../body.ts";
import { callOptionsOf } from "../call-options.ts";
import { commaSeparated, jsonBytes, type JsonParts } from "../json-bytes.ts";
import { logProblem } from "../log.ts";
import type { ServedModel } from "../model.ts";
import type { Models } from "../models.ts";
import { describe, invalid, Problem, problemOf } from "../problem.ts";
import { problemFor, sendProblem } from "../replies.ts";
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
  itemCountOf,
  itemsOf,
  metadataShape,
  outputTensors,
  resultTensor,
  type ProtocolTensor,
  type TensorValue,
} from "./model-tensors.ts";
import { bytesOf, dataFromBytes, dataFromJson, jsonOfData, malformed } from "./tensor-data.ts";
import { packageVersion } from "../version.ts";

const headerLength = "inference-header-content-length";

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
    v2.get("/v2/models/:model", { schema: modelV2Schema }, (request) => metadataOf(find(models, request)));
    v2.get("/v2/models/:model/ready", { schema: modelReadyV2Schema, logLevel: "warn" }, (request, reply) => {
      const { name, state } = find(models, request);
      const ready = state === "ready" && !models.isDraining;
      return reply.code(ready ? 200 : 503).send({ name, ready });
    });
    v2.post("/v2/models/:model/infer", { schema: inferV2Schema }, (request, reply) => infer(models, request, reply));
  });
}

/** Bodies of the binary extension, whose clients name their type or none. */
function takeBinary(app: FastifyInstance): void {
  const take = (_request: FastifyRequest, body: Buffer, done: (error: Error | null, body?: Buffer) => void): void =>
    done(null, body);
  app.addContentTypeParser("application/octet-stream", { parseAs: "buffer" }, take);
  app.addContentTypeParser("*", { parseAs: "buffer" }, (request, body: Buffer, done) => {
    const type = request.headers["content-type"];
    if (type === undefined) return done(null, body);
    const message = "Send the body as application/json, or as application/octet-stream with binary tensors.";
    return done(new Problem("UNSUPPORTED_MEDIA_TYPE", message));
  });
}

function find(models: Models, request: FastifyRequest): ServedModel {
  const { model: name } = request.params as { readonly model: string };
  return models.all.find((model) => model.name === name) ?? models.take(name, "model");
}

function metadataOf({ name, definition }: ServedModel): object {
  const described = (tensors: readonly ProtocolTensor[]): object[] =>
    tensors.map((tensor) => ({ name: tensor.name, datatype: tensor.datatype, shape: metadataShape(tensor) }));
  const { input, output, note } = definition;
  return {
    name,
    versions: ["1"],
    platform: "sheaf",
    inputs: input.kind === "json" ? [] : described(inputTensors(input)),
    outputs: described(outputTensors(output)),
    ...(note === undefined ? {} : { parameters: { note } }),
  };
}

async function infer(models: Models, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const model = models.take((request.params as { readonly model: string }).model, "model");
  const { header, binary } = splitBody(request);
  const { values, count } = readInputs(header["inputs"], binary, inputTensors(model.definition.input), model);
  const wanted = readOutputs(header, outputTensors(model.definition.output));
  const { id } = header;
  if (id !== undefined && typeof id !== "string") throw malformed(`id must be a text, got ${describe(id)}.`);
  const options = withParameters(callOptionsOf(request, reply, model.settings), header["parameters"]);
  const items = itemsOf(model.definition.input, values, count, model.parse);
  const outcomes = await model.inferAll(items, options).catch((error: unknown) => {
    throw problemFor(error, model);
  });
  const results = outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw problemFor(outcome.reason, model);
    return outcome.value.output;
  });
  const outputs = wanted.map(({ tensor, isBinary }) => ({
    value: resultTensor(model.definition.output, tensor, results),
    isBinary,
  }));
  return sendOutputs(reply, { model: model.name, id, outputs });
}

/** The JSON of a request, and the bytes of binary tensors after it. */
function splitBody({ headers, body }: FastifyRequest): { header: Record<string, unknown>; binary: Buffer } {
  if (!Buffer.isBuffer(body)) throw malformed("The body is empty.");
  const given = headers[headerLength];
  if (given === undefined && headers["content-type"]?.startsWith("application/octet-stream") === true)
    throw malformed("Send the length of the JSON in the header Inference-Header-Content-Length.");
  const length = given === undefined ? body.length : /^\d{1,10}$/.test(String(given)) ? Number(given) : -1;
  if (length < 0 || length > body.length)
    throw malformed(
      `Inference-Header-Content-Length must be the length of the JSON, at most the body's ${body.length} bytes, got ${String(given).slice(0, 40)}.`,
    );
  const header = jsonOf(body.subarray(0, length));
  if (!isObject(header)) throw malformed(`The request must be an object, got ${describe(header)}.`);
  return { header, binary: body.subarray(length) };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function readInputs(
  inputs: unknown,
  binary: Buffer,
  tensors: readonly ProtocolTensor[],
  { settings }: ServedModel,
): { values: TensorValue[]; count: number } {
  if (!Array.isArray(inputs)) throw malformed(`inputs must be an array, got ${describe(inputs)}.`);
  const values: TensorValue[] = [];
  let count: number | undefined;
  let at = 0;
  for (const [i, input] of (inputs as unknown[]).entries()) {
    const path = `inputs[${i}]`;
    if (!isObject(input)) throw malformed(`${path} must be an object, got ${describe(input)}.`);
    const { name, datatype, shape, parameters, data } = input;
    const tensor = tensors.find((candidate) => candidate.name === name);
    if (tensor === undefined || values.some((value) => value.name === name)) {
      const names = tensors.map((candidate) => candidate.name).join(", ");
      throw malformed(`${path}.name must be one of ${names}, each once, got ${describe(name)}.`);
    }
    if (datatype !== tensor.datatype)
      throw malformed(`${path}.datatype must be ${tensor.datatype} for ${tensor.name}, got ${describe(datatype)}.`);
    if (!Array.isArray(shape) || !shape.every((axis) => Number.isSafeInteger(axis) && (axis as number) >= 0))
      throw malformed(`${path}.shape must be an array of lengths, got ${describe(shape)}.`);
    const rows = itemCountOf(tensor, shape as number[], `${path}.shape`);
    const most = Math.min(settings.maxInputs, settings.queueMaxSize);
    if (rows > most) throw invalid(`${path}.shape[0]`, `at most ${most} (MAX_INPUTS, QUEUE_MAX_SIZE)`, rows);
    if (rows !== (count ?? rows)) throw invalid(`${path}.shape[0]`, `${count}, as in the other inputs`, rows);
    count = rows;

    const elementCount = (shape as number[]).reduce((product, axis) => product * axis, 1);
    const byteLength = isObject(parameters) ? parameters["binary_data_size"] : undefined;
    if (byteLength === undefined) {
      const value = dataFromJson(data, `${path}.data`, tensor.datatype, elementCount);
      values.push({ name: tensor.name, datatype: tensor.datatype, shape: shape as number[], data: value });
      continue;
    }
    if (data !== undefined) throw malformed(`${path} must have either data or binary_data_size.`);
    if (!Number.isSafeInteger(byteLength) || (byteLength as number) < 0 || at + (byteLength as number) > binary.length)
      throw malformed(
        `${path}.parameters.binary_data_size must be a length within the ${binary.length - at} bytes that follow, got ${describe(byteLength)}.`,
      );
    const bytes = binary.subarray(at, at + (byteLength as number));
    at += bytes.length;
    const value = dataFromBytes(bytes, path, tensor.datatype, elementCount);
    values.push({ name: tensor.name, datatype: tensor.datatype, shape: shape as number[], data: value });
  }
  if (at !== binary.length) throw malformed(`${binary.length - at} bytes follow that belong to no input.`);
  const missing = tensors.find(({ name }) => !values.some((value) => value.name === name));
  if (missing !== undefined) throw malformed(`inputs lacks ${missing.name}.`);
  return { values, count: count ?? 1 };
}

interface WantedOutput {
  readonly tensor: ProtocolTensor;
  readonly isBinary: boolean;
}

/** The outputs that are asked for, or all; each as JSON or as bytes. */
function readOutputs(header: Record<string, unknown>, tensors: readonly ProtocolTensor[]): WantedOutput[] {
  const { parameters, outputs } = header;
  const isBinary = isObject(parameters) && parameters["binary_data_output"] === true;
  if (outputs === undefined) return tensors.map((tensor) => ({ tensor, isBinary }));
  if (!Array.isArray(outputs)) throw malformed(`outputs must be an array, got ${describe(outputs)}.`);
  if (outputs.length > tensors.length) throw malformed(`outputs asks for ${outputs.length} of ${tensors.length}.`);
  return outputs.map((output: unknown, i) => {
    const name = isObject(output) ? output["name"] : output;
    const tensor = tensors.find((candidate) => candidate.name === name);
    if (tensor === undefined) {
      const names = tensors.map((candidate) => candidate.name).join(", ");
      throw malformed(`outputs[${i}].name must be one of ${names}, got ${describe(name)}.`);
    }
    const own = isObject(output) && isObject(output["parameters"]) ? output["parameters"]["binary_data"] : undefined;
    return { tensor, isBinary: typeof own === "boolean" ? own : isBinary };
  });
}

const priorities: readonly Priority[] = ["interactive", "immediate", "bulk"];

/** `priority` 0 (the default) is interactive, 1 (the highest) immediate, 2 bulk; `timeout` is in microseconds. */
function withParameters(options: CallOptions, parameters: unknown): CallOptions {
  if (parameters === undefined) return options;
  if (!isObject(parameters)) throw malformed(`parameters must be an object, got ${describe(parameters)}.`);
  const { priority, timeout } = parameters;
  const lane = priority === undefined ? options.priority : priorities[priority as number];
  if (priority !== undefined && lane === undefined) throw invalid("parameters.priority", "0, 1 or 2", priority);
  if (timeout !== undefined && !(typeof timeout === "number" && timeout >= 0 && Number.isFinite(timeout)))
    throw invalid("parameters.timeout", "a number of microseconds", timeout);
  // As in Triton, 0 stands for no timeout of the request's own.
  const timeoutMs = timeout === undefined || timeout === 0 ? Infinity : timeout / 1000;
  return { ...options, priority: lane, timeoutMs: Math.min(options.timeoutMs ?? Infinity, timeoutMs) };
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
