import protobuf from "protobufjs/minimal.js";
import { messageOf, Problem } from "../../../problems/problem.ts";
import { malformed } from "../kserve/tensor-data.ts";

// Read by hand, in place: decoded as a whole, a message of a few megabytes can become gigabytes of objects (two bytes are an
// empty tensor), and floats would be numbers of an array before they are floats again.

/** A ModelInferRequest: its fields as the JSON of the protocol has them, and the bytes of its tensors as they came. */
export interface InferMessage {
  readonly model: string;
  readonly version: string;
  readonly header: Readonly<Record<string, unknown>>;
  /** Of the inputs, in their order; none where they have `contents`. */
  readonly raw: readonly Buffer[];
}

/** An input as the JSON of the protocol has it, with the undecoded InferTensorContents in place of `data`. */
interface InputFields extends Record<string, unknown> {
  name: string;
  datatype: string;
  shape: (number | bigint)[];
  contents?: Buffer[];
}

/** Most inputs, outputs, axes or parameters in one list. */
const mostEntries = 256;

/** @throws {Problem} 400 where the bytes are not a ModelInferRequest. */
export function inferMessage(bytes: Buffer): InferMessage {
  return decoded("The message is not a ModelInferRequest", () => fieldsOf(reader(bytes)));
}

/** The fields that `read` reads. @throws {Problem} 400: an index out of range, a wrong wire type, a varint without an end. */
export function decoded<T>(mistake: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Problem ? error : malformed(`${mistake}: ${messageOf(error)}.`);
  }
}

export type Reader = protobuf.Reader;
export const reader = (bytes: Buffer): Reader => protobuf.Reader.create(bytes);

/** The bytes of an embedded message or of a bytes field, without a copy. */
export const bytesAt = (from: Reader): Buffer => from.bytes() as Buffer;

/** Most fields of one message. No valid one but that of elements, which says its own, has more. */
const mostFields = 4096;

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

const lengthDelimited = 2;

function fieldsOf(from: Reader): InferMessage {
  let [model, version, id] = ["", "", ""];
  const parameters: Record<string, unknown> = {};
  const inputs: InputFields[] = [];
  const outputs: Record<string, unknown>[] = [];
  const raw: Buffer[] = [];
  eachField(from, (field, wireType) => {
    if (wireType !== lengthDelimited) return false;
    if (field === 1) model = from.string();
    else if (field === 2) version = from.string();
    else if (field === 3) id = from.string();
    else if (field === 4) readParameter(bytesAt(from), parameters);
    else if (field === 5) add(inputs, inputOf(bytesAt(from)), "inputs");
    else if (field === 6) add(outputs, outputOf(bytesAt(from)), "outputs");
    else if (field === 7) add(raw, bytesAt(from), "raw_input_contents");
    else return false;
    return true;
  });
  const header = {
    inputs,
    ...(id === "" ? {} : { id }),
    ...(outputs.length === 0 ? {} : { outputs }),
    ...some(parameters),
  };
  return { model, version, header, raw };
}

function inputOf(bytes: Buffer): InputFields {
  const from = reader(bytes);
  const input: InputFields = { name: "", datatype: "", shape: [] };
  const parameters: Record<string, unknown> = {};
  eachField(from, (field, wireType) => {
    if (field === 3 && wireType === 0) return (add(input.shape, int64(from), "shape"), true);
    if (wireType !== lengthDelimited) return false;
    if (field === 1) input.name = from.string();
    else if (field === 2) input.datatype = from.string();
    else if (field === 3) {
      for (const packed = reader(bytesAt(from)); packed.pos < packed.len;) add(input.shape, int64(packed), "shape");
    } else if (field === 4) readParameter(bytesAt(from), parameters);
    else if (field === 5) add((input.contents ??= []), bytesAt(from), "contents");
    else return false;
    return true;
  });
  return Object.assign(input, some(parameters));
}

function outputOf(bytes: Buffer): Record<string, unknown> {
  const from = reader(bytes);
  const output: Record<string, unknown> = { name: "" };
  const parameters: Record<string, unknown> = {};
  eachField(from, (field, wireType) => {
    if (wireType !== lengthDelimited) return false;
    if (field === 1) output["name"] = from.string();
    else if (field === 2) readParameter(bytesAt(from), parameters);
    else return false;
    return true;
  });
  return Object.assign(output, some(parameters));
}

/** An entry of a map of InferParameter. */
function readParameter(entry: Buffer, parameters: Record<string, unknown>): void {
  const from = reader(entry);
  let key = "";
  let value: unknown;
  eachField(from, (field, wireType) => {
    if (wireType !== lengthDelimited) return false;
    if (field === 1) key = from.string();
    else if (field === 2) value = parameterOf(reader(bytesAt(from)));
    else return false;
    return true;
  });
  if (Object.keys(parameters).length >= mostEntries) throw tooMany("parameters");
  // Not an assignment: `__proto__` is a name like any other.
  Object.defineProperty(parameters, key, { value, enumerable: true, configurable: true, writable: true });
}

function parameterOf(from: Reader): unknown {
  let value: unknown;
  eachField(from, (field, wireType) => {
    if (field === 1 && wireType === 0) value = from.bool();
    else if (field === 2 && wireType === 0) value = int64(from);
    else if (field === 3 && wireType === lengthDelimited) value = from.string();
    else if (field === 4 && wireType === 1) value = from.double();
    else if (field === 5 && wireType === 0) value = toNumber(from.uint64());
    else return false;
    return true;
  });
  return value;
}

const toNumber = (long: unknown): number => (long as { toNumber(): number }).toNumber();

/** Beyond 2^53 - 1 a bigint: a length or a time is refused then, with the number that was sent. */
function int64(from: Reader): number | bigint {
  const long = from.int64();
  const number = toNumber(long);
  return Number.isSafeInteger(number) ? number : BigInt((long as { toString(): string }).toString());
}

const some = (parameters: Record<string, unknown>): object =>
  Object.keys(parameters).length === 0 ? {} : { parameters };

function add<T>(list: T[], entry: T, name: string): void {
  if (list.length >= mostEntries) throw tooMany(name);
  list.push(entry);
}

const tooMany = (name: string): Error => malformed(`${name} has more than ${mostEntries} entries.`);
