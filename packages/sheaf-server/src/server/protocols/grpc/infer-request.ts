import protobuf, { type Reader, type Type } from "protobufjs";
import { messageOf, Problem } from "../../../problems/problem.ts";
import { malformed } from "../kserve/tensor-data.ts";
import { types } from "./definition.ts";

/** A ModelInferRequest: its fields as the JSON of the protocol has them, and the bytes of its tensors as they came. */
export interface InferMessage {
  readonly model: string;
  readonly version: string;
  readonly header: Readonly<Record<string, unknown>>;
  /** Of the inputs, in their order; none where they have `contents`. */
  readonly raw: readonly Buffer[];
}

/** Most inputs, outputs, axes or parameters in one list. */
const mostEntries = 256;

/** Most bytes of a request beside those of its tensors. */
const mostBytes = 65_536;

/** Most fields of one message. No valid one but that of elements, which says its own, has more. */
const mostFields = 4096;

const lengthDelimited = 2;

/** Of one value of a type. */
export const wireTypeOf = (type: string): number =>
  (protobuf.types.basic as Readonly<Record<string, number>>)[type] ?? lengthDelimited;

export const contentsType: Type = types.lookupType("inference.InferTensorContents");
const requestType = types.lookupType("inference.ModelInferRequest");
// Elements stay bytes until it is known how many there must be.
const inputType = requestType.lookupType("InferInputTensor");
inputType.remove(inputType.fields["contents"]!);
inputType.add(new protobuf.Field("contents", 5, "bytes", "repeated"));

type Fields = Record<string, unknown>;

interface Decoded {
  readonly model_name: string;
  readonly model_version: string;
  readonly id: string;
  readonly parameters: Parameters;
  readonly inputs: readonly DecodedInput[];
  readonly outputs: readonly { readonly name: string; readonly parameters: Parameters }[];
  readonly raw_input_contents: readonly Buffer[];
}

interface DecodedInput {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly Long[];
  readonly parameters: Parameters;
  readonly contents: readonly Buffer[];
}

/** Each names the field that it has. An entry of a map may lack its value. */
type Parameters = Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;

interface Long {
  toNumber(): number;
  toString(): string;
}

/** @throws {Problem} 400 where the bytes are not a ModelInferRequest. */
export function inferMessage(bytes: Buffer): InferMessage {
  return decoded("The message is not a ModelInferRequest", () => {
    // Decoded at once, a few megabytes can become gigabytes of objects: two bytes are an empty tensor.
    if (bytes.length - tensorBytesOf(reader(bytes), false) > mostBytes)
      throw malformed(`A request must have at most ${mostBytes} bytes beside its tensors.`);
    const request = requestType.decode(bytes) as unknown as Decoded;
    const header = withParameters({ inputs: few(request.inputs, "inputs").map(inputOf) }, request.parameters);
    if (request.id !== "") header["id"] = request.id;
    if (request.outputs.length > 0)
      header["outputs"] = few(request.outputs, "outputs").map(({ name, parameters }) =>
        withParameters({ name }, parameters),
      );
    const raw = few(request.raw_input_contents, "raw_input_contents");
    return { model: request.model_name, version: request.model_version, header, raw };
  });
}

function inputOf({ name, datatype, shape, parameters, contents }: DecodedInput): object {
  const input: Fields = { name, datatype, shape: few(shape, "shape").map(toNumber) };
  if (contents.length > 0) input["contents"] = few(contents, "contents");
  return withParameters(input, parameters);
}

/** The fields that `read` reads. @throws {Problem} 400: an index out of range, a wrong wire type, a varint without an end. */
export function decoded<T>(mistake: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Problem ? error : malformed(`${mistake}: ${messageOf(error)}.`);
  }
}

export const reader = (bytes: Buffer): Reader => protobuf.Reader.create(bytes);

/** The bytes of an embedded message or of a bytes field, without a copy. */
export const bytesAt = (from: Reader): Buffer => from.bytes() as Buffer;

/**
 * Calls `read` for each field with its number; a field that it does not read is skipped. Every field costs time, whatever its
 * bytes: 10 MB can hold five million.
 */
export function eachField(
  from: Reader,
  read: (field: number, wireType: number) => boolean,
  most: number = mostFields,
): void {
  for (let fields = 0; from.pos < from.len; fields++) {
    if (fields >= most) throw malformed(`A message has more than ${most} fields.`);
    const tag = from.uint32();
    if (!read(tag >>> 3, tag & 7)) from.skipType(tag & 7);
  }
}

/**
 * The bytes of the tensors in a request, or in an input. The decoder does not compare wire types: a text that came as a number
 * would be the length of what follows, and could make a tensor's bytes fields of the message. So they are compared here.
 */
function tensorBytesOf(from: Reader, isInput: boolean): number {
  let bytes = 0;
  eachField(from, (field, wireType) => {
    const isAxis = isInput && field === 3 && wireType === 0;
    if (field > (isInput ? 5 : 7) || isAxis) return false;
    if (wireType !== lengthDelimited) throw new TypeError(`field ${field} has the wire type ${wireType}`);
    if (field === (isInput ? 5 : 7)) bytes += bytesAt(from).length;
    else if (field === 5) bytes += tensorBytesOf(reader(bytesAt(from)), true);
    else return false;
    return true;
  });
  return bytes;
}

/** Beyond 2^53 - 1 a bigint: a length or a time is refused then, with the number that was sent. */
function toNumber(long: Long): number | bigint {
  const number = long.toNumber();
  return Number.isSafeInteger(number) ? number : BigInt(long.toString());
}

function withParameters(fields: Fields, parameters: Parameters): Fields {
  const names = Object.keys(parameters);
  if (names.length > 0)
    fields["parameters"] = Object.fromEntries(
      few(names, "parameters").map((name) => [name, valueOf(parameters[name]!)]),
    );
  return fields;
}

function valueOf(parameter: Parameters[string]): unknown {
  const choice = parameter?.["parameter_choice"] as string | undefined;
  if (choice === undefined) return undefined;
  const value = parameter![choice];
  if (choice === "int64_param") return toNumber(value as Long);
  return choice === "uint64_param" ? (value as Long).toNumber() : value;
}

function few<T>(list: readonly T[], name: string): readonly T[] {
  if (list.length > mostEntries) throw malformed(`${name} has more than ${mostEntries} entries.`);
  return list;
}
