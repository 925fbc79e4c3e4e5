import { describe } from "sheaf/internal";
import type { FastifyRequest } from "fastify";
import type { CallOptions, Priority } from "sheaf";
import { Type, type Schema } from "../../../http/schema/json-schema.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import type { Settings } from "../../../settings/settings.ts";
import type { ServedModel } from "../../models/served-model.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import { costs } from "../../../shared/costs.ts";
import { elements } from "../../../runners/tensors/elements.ts";
import type { Models } from "../../models/models.ts";
import {
  kindOf,
  optional,
  readFields,
  readLater,
  schemaOfFields,
  trueOrFalse,
  type Fields,
  type Kind,
  type ValuesOf,
} from "../fields.ts";
import { headerLength } from "./binary-body.ts";
import { tensorsOf } from "./model.ts";
import { itemCountOf, type ProtocolTensor, type RequestTensor } from "./model-tensors.ts";
import { dataFromBytes, dataFromJson, malformed, type TensorData } from "./tensor-data.ts";

/** The JSON of a request, and the bytes of binary tensors after it. */
export function splitBody(
  { headers, body }: FastifyRequest,
  { settings }: ServedModel,
): { header: JsonHead; binary: Buffer } {
  if (!Buffer.isBuffer(body)) throw malformed("The body is empty.");
  const given = headers[headerLength];
  if (given === undefined && headers["content-type"]?.startsWith("application/octet-stream") === true)
    throw malformed("Send the length of the JSON in the header Inference-Header-Content-Length.");
  const length = given === undefined ? body.length : /^\d{1,10}$/.test(String(given)) ? Number(given) : -1;
  if (length < 0 || length > body.length)
    throw malformed(
      `Inference-Header-Content-Length must be the length of the JSON, at most the body's ${body.length} bytes, got ${String(given).slice(0, 40)}.`,
    );
  const bytes = body.subarray(0, length);
  const last = lastHeads.get(settings);
  const header = last?.bytes.equals(bytes) === true ? last.header : jsonOf(bytes);
  if (!isObject(header)) throw malformed(`The request must be an object, got ${describe(header)}.`);
  if (header !== last?.header && length < body.length && length <= longestHead)
    lastHeads.set(settings, { bytes: Buffer.from(bytes), header });
  return { header, binary: body.subarray(length) };
}

type JsonHead = Readonly<Record<string, unknown>>;

/**
 * The last JSON that stood before binary tensors, as it was read. A client's requests differ in what follows it, and to parse it
 * each time takes a thirtieth of the HTTP thread.
 */
const lastHeads = new WeakMap<Settings, { readonly bytes: Buffer; readonly header: JsonHead }>();
const longestHead = 4096;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An input whose name, datatype and shape are the model's. */
export interface NamedInput {
  readonly index: number;
  /** As in `inputs[0]`. */
  readonly path: string;
  readonly tensor: ProtocolTensor;
  /** Elements that the shape says. */
  readonly elementCount: number;
  readonly input: Readonly<Record<string, unknown>>;
}

/** The elements of an input, and the path where they stand. @throws {Problem} */
export type ReadData = (named: NamedInput) => { readonly data: TensorData; readonly path: string };

/** The tensors of a request, whose elements `readData` finds. @throws {Problem} 400 or 422, naming the path. */
export function readInputs(
  inputs: unknown,
  readData: ReadData,
  tensors: readonly ProtocolTensor[],
  { settings }: ServedModel,
): { values: RequestTensor[]; count: number } {
  if (!Array.isArray(inputs)) throw malformed(`inputs must be an array, got ${describe(inputs)}.`);
  const values: RequestTensor[] = [];
  let count: number | undefined;
  for (const [index, input] of (inputs as unknown[]).entries()) {
    const path = `inputs[${index}]`;
    if (!isObject(input)) throw malformed(`${path} must be an object, got ${describe(input)}.`);
    const { name, datatype, shape } = input;
    const tensor = tensors.find((candidate) => candidate.name === name);
    if (tensor === undefined || values.some((value) => value.name === name)) {
      const names = tensors.map((candidate) => candidate.name).join(", ");
      throw malformed(`${path}.name must be one of ${names}, each once, got ${describe(name)}.`);
    }
    if (datatype !== tensor.datatype)
      throw malformed(`${path}.datatype must be ${tensor.datatype} for ${tensor.name}, got ${describe(datatype)}.`);
    if (!Array.isArray(shape)) throw malformed(`${path}.shape must be an array of lengths, got ${describe(shape)}.`);
    if (shape.length > costs.tensorAxes)
      throw malformed(`${path}.shape must have at most ${costs.tensorAxes} axes, got ${shape.length}.`);
    const wrong = shape.findIndex((axis) => !(Number.isSafeInteger(axis) && (axis as number) >= 0));
    if (wrong >= 0)
      throw malformed(`${path}.shape[${wrong}] must be a length, from 0 to 2^53 − 1, got ${describe(shape[wrong])}.`);
    const rows = itemCountOf(tensor, shape as number[], `${path}.shape`);
    const most = Math.min(settings.maxInputs, settings.queueMaxSize);
    if (rows > most) throw invalid(`${path}.shape[0]`, `at most ${most} (MAX_INPUTS, QUEUE_MAX_SIZE)`, rows);
    if (rows !== (count ?? rows)) throw invalid(`${path}.shape[0]`, `${count}, as in the other inputs`, rows);
    count = rows;

    const elementCount = (shape as number[]).reduce((product, axis) => product * axis, 1);
    const read = readData({ index, path, tensor, elementCount, input });
    values.push({ name: tensor.name, datatype: tensor.datatype, shape: shape as number[], ...read });
  }
  const missing = tensors.find(({ name }) => !values.some((value) => value.name === name));
  if (missing !== undefined) throw malformed(`inputs lacks ${missing.name}.`);
  return { values, count: count ?? 1 };
}

/** Elements as JSON, or as `binary_data_size` bytes after the JSON; `end` checks that no bytes are left. */
export function jsonOrBinary(binary: Buffer): { readonly readData: ReadData; end(): void } {
  let at = 0;
  return {
    readData({ path, tensor: { datatype }, elementCount, input: { parameters, data } }) {
      const { binary_data_size: byteLength } = ofInput.read(parameters, `${path}.parameters`);
      if (byteLength === undefined)
        return { data: dataFromJson(data, `${path}.data`, datatype, elementCount), path: `${path}.data` };
      if (data !== undefined) throw malformed(`${path} must have either data or binary_data_size.`);
      const left = binary.length - at;
      if (!Number.isSafeInteger(byteLength) || (byteLength as number) < 0 || (byteLength as number) > left)
        throw malformed(
          `${path}.parameters.binary_data_size must be a length within the ${left} bytes that follow, got ${describe(byteLength)}.`,
        );
      const bytes = binary.subarray(at, at + (byteLength as number));
      at += bytes.length;
      return { data: dataFromBytes(bytes, path, datatype, elementCount), path };
    },
    end() {
      if (at !== binary.length) throw malformed(`${binary.length - at} bytes follow that belong to no input.`);
    },
  };
}

export interface WantedOutput {
  readonly tensor: ProtocolTensor;
  readonly isBinary: boolean;
}

/** The outputs that are asked for, or all; each as JSON or as bytes, as it or the request says, else `byDefault`. */
export function readOutputs(
  header: Readonly<Record<string, unknown>>,
  tensors: readonly ProtocolTensor[],
  byDefault: boolean,
): WantedOutput[] {
  const { outputs } = header;
  const { binary_data_output: isBinary = byDefault } = ofRequest.read(header["parameters"], "parameters");
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
    const given = isObject(output) ? output["parameters"] : undefined;
    return { tensor, isBinary: ofOutput.read(given, `outputs[${i}].parameters`).binary_data ?? isBinary };
  });
}

/** The parameters of a request or of a tensor. One that does nothing here is refused: its caller relies on it. */
export function parameters<Rows extends Fields>(rows: Rows): Kind<ValuesOf<Rows>> {
  const names = Object.keys(rows);
  return {
    read(value = {}, path) {
      if (!isObject(value)) throw malformed(`${path} must be an object, got ${describe(value)}.`);
      const unknown = Object.keys(value)
        .find((name) => !names.includes(name))
        ?.slice(0, 100);
      if (unknown === undefined) return readFields(rows, value, path);
      const message = `${path}.${unknown} is not supported; there ${names.length > 1 ? "are" : "is"} ${names.join(", ")}.`;
      throw new Problem("INVALID_INPUT", message, { param: `${path}.${unknown}` });
    },
    schema: (models) => schemaOfFields(rows, models, false),
  };
}

const priorities: readonly Priority[] = ["interactive", "immediate", "bulk"];

/** Of a request. `timeout` is read with the model: its longest is the model's. */
const ofRequest = parameters({
  priority: optional<0 | 1 | 2>(
    kindOf("0, 1 or 2", (value) => value === 0 || value === 1 || value === 2, Type.Integer({ enum: [0, 1, 2] })),
  ),
  timeout: optional(
    readLater(({ settings: { requestTimeoutMs } }) => Type.Number({ minimum: 0, maximum: requestTimeoutMs * 1000 })),
    "Per-request timeout in µs; 0 = the server's default.",
  ),
  binary_data_output: optional(trueOrFalse),
});
/** Of an input: bytes that follow the JSON. */
export const ofInput: Kind<{ readonly binary_data_size: unknown }> = parameters({
  binary_data_size: optional(readLater(() => Type.Integer({ minimum: 0 }))),
});
const ofOutput = parameters({ binary_data: optional(trueOrFalse) });

/** The JSON of a request, as `readInputs`, `readOutputs` and `withParameters` read it. */
export const requestSchema = (models: Models): Schema =>
  Type.Object({
    id: Type.Optional(Type.String({ maxLength: costs.idLength })),
    parameters: Type.Optional(ofRequest.schema(models)),
    inputs: Type.Array(inputSchema(models), { minItems: 1 }),
    outputs: Type.Optional(Type.Array(outputSchema(models))),
  });

const inputSchema = (models: Models): Schema =>
  Type.Object({
    name: nameOf(models.all.flatMap((model) => tensorsOf(model).inputs)),
    datatype: Type.String({ enum: [...Object.keys(elements), "BYTES"] }),
    shape: Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), { maxItems: costs.tensorAxes }),
    parameters: Type.Optional(ofInput.schema(models)),
    data: Type.Optional(dataSchema),
  });

const outputSchema = (models: Models): Schema =>
  Type.Object({
    name: nameOf(models.all.flatMap((model) => tensorsOf(model).outputs)),
    parameters: Type.Optional(ofOutput.schema(models)),
  });

export const dataSchema: Schema = Type.Array(Type.Unknown(), {
  description: "The values in row-major order, flat or nested.",
});

/** The names of the served models' tensors; of one of them, as no schema knows which model a path names. */
const nameOf = (tensors: readonly ProtocolTensor[]): Schema =>
  Type.String(tensors.length === 0 ? {} : { enum: [...new Set(tensors.map(({ name }) => name))] });

/** As in Triton `priority` 0 (the default) is interactive, 1 (the highest) immediate, 2 bulk; the header goes first. `timeout` is in microseconds. */
export function withParameters(options: CallOptions, parameters: unknown, longestMs: number): CallOptions {
  if (parameters === undefined) return options;
  const { priority, timeout } = ofRequest.read(parameters, "parameters");
  const lane = options.priority ?? priorities[priority ?? 0];
  const most = longestMs * 1000;
  if (timeout !== undefined && !(typeof timeout === "number" && timeout >= 0 && timeout <= most))
    throw invalid("parameters.timeout", `a number of microseconds, at most ${most} (REQUEST_TIMEOUT_MS)`, timeout);
  // As in Triton, 0 stands for no timeout of the request's own.
  const timeoutMs = timeout === undefined || timeout === 0 ? Infinity : timeout / 1000;
  return { ...options, priority: lane, timeoutMs: Math.min(options.timeoutMs ?? Infinity, timeoutMs) };
}
