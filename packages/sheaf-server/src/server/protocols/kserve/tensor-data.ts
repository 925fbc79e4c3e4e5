import { describe } from "sheaf/internal";
import { isUtf8 } from "node:buffer";
import type { TensorDatatype } from "../../../runners/contract/model-spec.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import { elements, shownElements, type NumberArray, type NumberType } from "../../../runners/tensors/elements.ts";
import { isFiniteHalf, numberOfHalf } from "../../../runners/tensors/half.ts";
import { textAt } from "../../codec/text-at.ts";

/** A tensor's elements in row order: texts for BYTES, 0 and 1 for BOOL. */
export type TensorData = NumberArray | string[];

/** `count` elements from JSON: a flat array, or nested ones in row order. @throws {Problem} 400 or 422, naming the path. */
export function dataFromJson(value: unknown, path: string, datatype: TensorDatatype, count: number): TensorData {
  if (!Array.isArray(value)) throw malformed(`${path} must be an array, got ${describe(value)}.`);
  const flat = (value.some(Array.isArray) ? value.flat(maxDepth) : value) as unknown[];
  if (flat.length !== count)
    throw malformed(`${path} must hold ${count} elements, as its shape says, got ${flat.length}.`);
  if (datatype === "BYTES") {
    return flat.map((text, i) => textAt(text, `${path}[${i}]`));
  }
  const element = elements[datatype];
  const { stored } = element;
  const data = new element.array(count);
  for (let i = 0; i < count; i++) {
    if (!element.holds(flat[i])) throw invalid(`${path}[${i}]`, element.expected, flat[i]);
    data[i] = stored === undefined ? (flat[i] as number) : stored(flat[i]);
  }
  return data;
}

const maxDepth = 16;

/**
 * `count` elements from the bytes of the binary extension: little-endian, BYTES each after its length as uint32.
 * @throws {Problem} 400 when the bytes are too few or too many; 422 for a number that is not finite.
 */
export function dataFromBytes(bytes: Buffer, path: string, datatype: TensorDatatype, count: number): TensorData {
  if (datatype === "BYTES") return textsFromBytes(bytes, path, count);
  const expected = count * elements[datatype].array.BYTES_PER_ELEMENT;
  if (bytes.length !== expected)
    throw malformed(`${path} must have ${expected} bytes for ${count} × ${datatype}, got ${bytes.length}.`);
  return checkedNumbers(numbersOver(bytes, datatype, count), path, datatype);
}

/** Numbers as they came in bytes, all finite, and 0 or 1 for BOOL. @throws {Problem} 422. */
export function checkedNumbers(data: NumberArray, path: string, datatype: TensorDatatype): NumberArray {
  if (data instanceof Float32Array || data instanceof Float64Array) {
    // A plain loop: a callback for each of a body's numbers costs as much as reading them.
    for (let i = 0; i < data.length; i++)
      if (!Number.isFinite(data[i])) throw invalid(`${path}[${i}]`, "a finite number", data[i]);
  }
  if (datatype === "FP16") {
    const halves = data as Uint16Array;
    for (let i = 0; i < halves.length; i++)
      if (!isFiniteHalf(halves[i]!)) throw invalid(`${path}[${i}]`, "a finite number", numberOfHalf(halves[i]!));
  }
  if (datatype === "BOOL") {
    const index = (data as Uint8Array).findIndex((value) => value > 1);
    if (index >= 0) throw invalid(`${path}[${index}]`, "0 or 1", data[index]);
  }
  return data;
}

/** In place where the bytes stand at a multiple of an element's size, else as a copy. */
function numbersOver(bytes: Buffer, datatype: NumberType, count: number): NumberArray {
  const { array: Elements } = elements[datatype];
  if (bytes.byteOffset % Elements.BYTES_PER_ELEMENT === 0) return new Elements(bytes.buffer, bytes.byteOffset, count);
  const data = new Elements(count);
  new Uint8Array(data.buffer).set(bytes);
  return data;
}

function textsFromBytes(bytes: Buffer, path: string, count: number): string[] {
  const texts: string[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + 4 > bytes.length) throw malformed(`${path} ends before text ${i} of ${count}.`);
    const length = bytes.readUInt32LE(at);
    if (length > bytes.length - at - 4)
      throw malformed(`${path}: text ${i} claims ${length} bytes, more than there are.`);
    const content = bytes.subarray(at + 4, at + 4 + length);
    texts.push(textOf(content, `${path}[${i}]`));
    at += 4 + length;
  }
  if (at !== bytes.length) throw malformed(`${path} has ${bytes.length - at} bytes after its ${count} texts.`);
  return texts;
}

/** @throws {Problem} 422 for bytes that are not UTF-8: decoded anyway they would be another text, with U+FFFD for wrong bytes. */
export function textOf(content: Buffer, path: string): string {
  if (!isUtf8(content)) throw new Problem("INVALID_INPUT", `${path} must be UTF-8.`, { param: path });
  return content.toString("utf8");
}

/** The elements as the binary extension sends them. */
export function bytesOf(data: TensorData): Buffer {
  if (!Array.isArray(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat(
    data.flatMap((text) => {
      const content = Buffer.from(text, "utf8");
      const length = Buffer.alloc(4);
      length.writeUInt32LE(content.length);
      return [length, content];
    }),
  );
}

/** The elements as JSON values; float32 stays as it is, to be written straight into bytes. */
export function jsonOfData(data: TensorData, datatype: TensorDatatype): string | Float32Array {
  if (data instanceof Float32Array) return data;
  return JSON.stringify(datatype === "BYTES" ? data : shownElements(data as NumberArray, datatype));
}

/** 400: the request violates the protocol, whatever the model accepts. */
export function malformed(message: string): Problem {
  return new Problem("BAD_REQUEST", message);
}
