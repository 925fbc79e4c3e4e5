import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { numberOfHalf } from "../tensors/half.ts";
import { parsedJson } from "./read-json.ts";

/** As the format's own reader has it. */
const maxHeaderBytes = 100_000_000;

const types: Readonly<Record<string, { readonly bytes: number; at(data: DataView, offset: number): number }>> = {
  F16: { bytes: 2, at: (data, offset) => numberOfHalf(data.getUint16(offset, true)) },
  F32: { bytes: 4, at: (data, offset) => data.getFloat32(offset, true) },
  F64: { bytes: 8, at: (data, offset) => data.getFloat64(offset, true) },
};

/** The place of a tensor in a file, in bytes after the header. */
interface Place {
  readonly name: string;
  readonly dtype: string;
  readonly from: number;
  readonly to: number;
}

/**
 * The float tensors of these names, and nothing else of the file. Each has `lengths[name]` numbers.
 * @throws {Error} the file is broken, its tensors overlap, or a wanted one is missing or of another length or type.
 */
export function readSafetensors(
  path: string,
  lengths: Readonly<Record<string, number>>,
): Readonly<Record<string, Float32Array>> {
  const file = openSync(path, "r");
  try {
    const read = (bytes: number, position: number): Buffer => {
      const buffer = Buffer.alloc(bytes);
      if (readSync(file, buffer, 0, bytes, position) === bytes) return buffer;
      throw new Error(`${path} ends early: it is not a whole safetensors file.`);
    };
    const size = fstatSync(file).size;
    const headerBytes = size < 8 ? Infinity : Number(read(8, 0).readBigUInt64LE(0));
    if (headerBytes > Math.min(size - 8, maxHeaderBytes)) throw new Error(`${path} is not a safetensors file.`);
    const dataAt = 8 + headerBytes;
    const header = parsedJson(read(headerBytes, 8).toString("utf8"), path);
    const places = placesOf(header, size - dataAt, path);
    const tensors = Object.entries(lengths).map(([name, length]) => {
      const place = places.get(name);
      if (place === undefined) throw new Error(`${path}: ${name} must have ${length} numbers, got none.`);
      const type = types[place.dtype];
      if (type === undefined) throw new Error(`${path}: ${name} is ${place.dtype}; F32, F16 and F64 are served.`);
      const count = (place.to - place.from) / type.bytes;
      if (count !== length) throw new Error(`${path}: ${name} must have ${length} numbers, got ${count}.`);
      const { buffer, byteOffset, byteLength } = read(place.to - place.from, dataAt + place.from);
      const data = new DataView(buffer, byteOffset, byteLength);
      return [name, Float32Array.from({ length }, (_, i) => type.at(data, i * type.bytes))];
    });
    return Object.fromEntries(tensors);
  } finally {
    closeSync(file);
  }
}

/** @throws {Error} a tensor lies outside the file, or in another one: 3,000 over the same 8 MB would make 24 GB of it. */
function placesOf(header: unknown, dataBytes: number, path: string): ReadonlyMap<string, Place> {
  const entries = Object.entries((header ?? {}) as Readonly<Record<string, Partial<SafetensorsEntry> | null>>);
  const places = entries.flatMap(([name, entry]): Place[] => {
    if (name === "__metadata__") return [];
    const [from = -1, to = -1] = Array.isArray(entry?.data_offsets) ? entry.data_offsets : [];
    const isInside =
      Number.isSafeInteger(from) && Number.isSafeInteger(to) && 0 <= from && from <= to && to <= dataBytes;
    if (!isInside) throw new Error(`${path}: data_offsets of ${name} do not lie in the file.`);
    return [{ name, dtype: String(entry?.dtype), from, to }];
  });
  places.sort((a, b) => a.from - b.from || a.to - b.to);
  places.forEach((place, i) => {
    const before = places[i - 1];
    if (before !== undefined && place.from < before.to)
      throw new Error(`${path}: ${before.name} and ${place.name} overlap.`);
  });
  return new Map(places.map((place) => [place.name, place]));
}

interface SafetensorsEntry {
  readonly dtype: string;
  readonly data_offsets: readonly number[];
}
