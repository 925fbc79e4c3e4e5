import type { Reader } from "protobufjs";
import type { TensorDatatype } from "../../../runners/contract/model-spec.ts";
import { elements } from "../../../runners/tensors/elements.ts";
import { invalid } from "../../../problems/problem.ts";
import type { NamedInput, ReadData } from "../kserve/request.ts";
import { ofInput } from "../kserve/request.ts";
import { checkedNumbers, dataFromBytes, malformed, textOf } from "../kserve/tensor-data.ts";
import { bytesAt, contentsType, decoded, eachField, reader, wireTypeOf } from "./infer-request.ts";

/** The field of InferTensorContents with the elements of a datatype. */
const fieldNames: Readonly<Record<TensorDatatype, string | undefined>> = {
  // The protocol has no field for it.
  FP16: undefined,
  BOOL: "bool_contents",
  INT8: "int_contents",
  INT16: "int_contents",
  INT32: "int_contents",
  INT64: "int64_contents",
  UINT8: "uint_contents",
  UINT16: "uint_contents",
  UINT32: "uint_contents",
  UINT64: "uint64_contents",
  FP32: "fp32_contents",
  FP64: "fp64_contents",
  BYTES: "bytes_contents",
};

/** Elements as `raw_input_contents`, or as the `contents` of each input. @throws {Problem} 400 or 422, naming the path. */
export function rawOrContents(raw: readonly Buffer[], inputs: readonly unknown[]): { readData: ReadData; end(): void } {
  if (raw.length > 0 && raw.length !== inputs.length)
    throw malformed(
      `raw_input_contents must have one entry for each of the ${inputs.length} inputs, got ${raw.length}.`,
    );
  return {
    readData(named) {
      const { index, path, input, tensor, elementCount } = named;
      const { binary_data_size: byteLength } = ofInput.read(input["parameters"], `${path}.parameters`);
      const contents = input["contents"] as readonly Buffer[] | undefined;
      // Of the HTTP protocol; KServe's client sends it here too, always with raw_input_contents.
      const bytes = raw[index]?.length ?? 0;
      if (byteLength !== undefined && byteLength !== bytes)
        throw invalid(`${path}.parameters.binary_data_size`, `${bytes}, the bytes in raw_input_contents`, byteLength);
      if (raw.length === 0) return dataFromContents(contents ?? [], named);
      if (contents !== undefined) throw malformed(`${path} must have either contents or raw_input_contents.`);
      const at = `raw_input_contents[${index}]`;
      return { data: dataFromBytes(raw[index]!, at, tensor.datatype, elementCount), path: at };
    },
    // Its length was compared already.
    end: () => undefined,
  };
}

/** A message in pieces: later pieces add to earlier ones. */
function dataFromContents(
  pieces: readonly Buffer[],
  { path, tensor: { datatype }, elementCount: count }: NamedInput,
): ReturnType<ReadData> {
  const at = `${path}.contents`;
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  // An element takes a byte at least: nothing is allocated for more elements than a message can hold.
  if (count > bytes) throw wrongCount(at, count, `at most ${bytes}`);
  const name = fieldNames[datatype];
  if (name === undefined) throw malformed(`${at}: ${datatype} must come in raw_input_contents.`);
  const { id, type } = contentsType.fields[name]!;
  const wireType = wireTypeOf(type);
  const texts: string[] = [];
  const element = datatype === "BYTES" ? undefined : elements[datatype];
  const numbers = element && new element.array(count);
  const isBounded = wireType === 0 && !(numbers instanceof BigInt64Array || numbers instanceof BigUint64Array);
  let length = 0;
  const take = (from: Reader): void => {
    if (length === count) throw wrongCount(at, count, "more");
    if (numbers === undefined) texts.push(textOf(bytesAt(from), `${at}.${name}[${length}]`));
    else {
      const value = numberAt(from, type);
      if (isBounded && ((value as number) < element!.minimum || (value as number) > element!.maximum))
        throw invalid(`${at}.${name}[${length}]`, element!.expected, value);
      numbers[length] = value;
    }
    length++;
  };
  const takeAll = (packed: Buffer): void => {
    const size = numbers!.BYTES_PER_ELEMENT;
    if (wireType === 0 || packed.length % size !== 0 || packed.length > (count - length) * size)
      for (const from = reader(packed); from.pos < from.len;) take(from);
    else {
      // Copied as a block: one by one they would cost fifty times as much.
      new Uint8Array(numbers!.buffer).set(packed, length * size);
      length += packed.length / size;
    }
  };
  const takeField = (from: Reader, field: number, given: number): boolean => {
    const isPacked = given === 2 && wireType !== 2;
    if (field !== id || (given !== wireType && !isPacked))
      throw malformed(`${at} of ${datatype} must be ${name} alone.`);
    if (isPacked) takeAll(bytesAt(from));
    else take(from);
    return true;
  };
  decoded(`${at} is not an InferTensorContents`, () => {
    for (const piece of pieces) {
      const from = reader(piece);
      eachField(from, (field, given) => takeField(from, field, given), count + 1);
    }
    if (length !== count) throw wrongCount(at, count, length);
  });
  if (numbers === undefined) return { data: texts, path: `${at}.${name}` };
  return { data: checkedNumbers(numbers, `${at}.${name}`, datatype), path: at };
}

/** A number of a type of protobuf. */
function numberAt(from: Reader, type: string): number | bigint {
  switch (type) {
    case "int64":
      return BigInt.asIntN(64, bits(from));
    case "uint64":
      return bits(from);
    case "bool":
      return Number(from.bool());
    case "int32":
      return from.int32();
    case "uint32":
      return from.uint32();
    default:
      return type === "float" ? from.float() : from.double();
  }
}

function bits(from: Reader): bigint {
  const { high, low } = from.uint64() as { readonly high: number; readonly low: number };
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

const wrongCount = (path: string, count: number, got: number | string): Error =>
  malformed(`${path} must hold ${count} elements, as its shape says, got ${got}.`);
