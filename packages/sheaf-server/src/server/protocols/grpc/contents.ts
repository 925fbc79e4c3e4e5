import { elements, type NumberType } from "../../../runners/tensors/elements.ts";
import { invalid } from "../../../problems/problem.ts";
import type { NamedInput, ReadData } from "../kserve/request.ts";
import { ofInput } from "../kserve/request.ts";
import { checkedNumbers, dataFromBytes, malformed, textOf, type TensorData } from "../kserve/tensor-data.ts";
import { bytesAt, decoded, eachField, reader, type Reader } from "./infer-request.ts";

/** Where InferTensorContents has the elements of a datatype, and how one is read. */
interface Contents {
  readonly field: number;
  readonly name: string;
  readonly wireType: 0 | 1 | 5;
  read(from: Reader): number | bigint;
}

const int: Contents = { field: 2, name: "int_contents", wireType: 0, read: (from) => from.int32() };
const uint: Contents = { field: 4, name: "uint_contents", wireType: 0, read: (from) => from.uint32() };
const contentsOf: Readonly<Record<NumberType, Contents | undefined>> = {
  // The protocol has no field for it.
  FP16: undefined,
  BOOL: { field: 1, name: "bool_contents", wireType: 0, read: (from) => Number(from.bool()) },
  INT8: int,
  INT16: int,
  INT32: int,
  INT64: { field: 3, name: "int64_contents", wireType: 0, read: (from) => BigInt.asIntN(64, bits(from)) },
  UINT8: uint,
  UINT16: uint,
  UINT32: uint,
  UINT64: { field: 5, name: "uint64_contents", wireType: 0, read: (from) => bits(from) },
  FP32: { field: 6, name: "fp32_contents", wireType: 5, read: (from) => from.float() },
  FP64: { field: 7, name: "fp64_contents", wireType: 1, read: (from) => from.double() },
};
const texts = { field: 8, name: "bytes_contents" };

function bits(from: Reader): bigint {
  const { high, low } = from.uint64() as { readonly high: number; readonly low: number };
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

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
  { path, tensor, elementCount: count }: NamedInput,
): ReturnType<ReadData> {
  const { datatype } = tensor;
  const at = `${path}.contents`;
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  // An element takes a byte at least: nothing is allocated for more elements than a message can hold.
  if (count > bytes) throw wrongCount(at, count, `at most ${bytes}`);
  const data = decoded(`${at} is not an InferTensorContents`, () =>
    datatype === "BYTES" ? textsOf(pieces, at, count) : numbersOf(pieces, at, datatype, count),
  );
  return { data, path: datatype === "BYTES" ? `${at}.${texts.name}` : at };
}

function textsOf(pieces: readonly Buffer[], path: string, count: number): string[] {
  const data: string[] = [];
  for (const piece of pieces) {
    const from = reader(piece);
    eachField(
      from,
      (field, wireType) => {
        if (field !== texts.field || wireType !== 2) throw otherField(path, texts.name, "BYTES");
        if (data.length === count) throw wrongCount(path, count, "more");
        data.push(textOf(bytesAt(from), `${path}.${texts.name}[${data.length}]`));
        return true;
      },
      count + 1,
    );
  }
  if (data.length !== count) throw wrongCount(path, count, data.length);
  return data;
}

function numbersOf(pieces: readonly Buffer[], path: string, datatype: NumberType, count: number): TensorData {
  const contents = contentsOf[datatype];
  if (contents === undefined) throw malformed(`${path}: ${datatype} must come in raw_input_contents.`);
  const { field: wanted, name, wireType: ofOne, read } = contents;
  const { array: Elements, expected, minimum, maximum } = elements[datatype];
  const data = new Elements(count);
  const isBounded = ofOne === 0 && !(data instanceof BigInt64Array || data instanceof BigUint64Array);
  let length = 0;
  const take = (from: Reader): void => {
    if (length === count) throw wrongCount(path, count, "more");
    const value = read(from);
    if (isBounded && ((value as number) < minimum || (value as number) > maximum))
      throw invalid(`${path}.${name}[${length}]`, expected, value);
    data[length++] = value;
  };
  for (const piece of pieces) {
    const from = reader(piece);
    eachField(
      from,
      (field, wireType) => {
        if (field !== wanted || (wireType !== 2 && wireType !== ofOne)) throw otherField(path, name, datatype);
        if (wireType === ofOne) take(from);
        else for (const packed = reader(bytesAt(from)); packed.pos < packed.len;) take(packed);
        return true;
      },
      count + 1,
    );
  }
  if (length !== count) throw wrongCount(path, count, length);
  return checkedNumbers(data, `${path}.${name}`, datatype);
}

const otherField = (path: string, name: string, datatype: string): Error =>
  malformed(`${path} of ${datatype} must be ${name} alone.`);

const wrongCount = (path: string, count: number, got: number | string): Error =>
  malformed(`${path} must hold ${count} elements, as its shape says, got ${got}.`);
