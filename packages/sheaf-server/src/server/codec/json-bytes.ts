import { encodedRow } from "sheaf/internal/node";
import { costs } from "../../shared/costs.ts";
import { maxFloat32JsonBytes, writeFloat32Json } from "./float32-json.ts";
import type { LargeJson } from "./large-json.ts";

/** JSON in pieces: finished text, float arrays that are written straight into the reply's bytes, and large values. */
export type JsonParts = readonly (string | Float32Array | LargeJson)[];

type Part = string | Float32Array | Uint8Array;

/** The most bytes that the pieces may take; Infinity if one is a large value. */
export function mostJsonBytes(parts: JsonParts): number {
  let most = 0;
  for (const part of parts) most += typeof part === "object" && "pieces" in part ? Infinity : maxBytesOf(part);
  return most;
}

/** The bytes of the pieces, about `costs.pieceBytes` at a time. */
export function* jsonBytesOf(parts: JsonParts): Generator<Buffer> {
  let group: Part[] = [];
  let most = 0;
  for (const part of flat(parts)) {
    group.push(part);
    most += maxBytesOf(part);
    if (most < costs.pieceBytes) continue;
    yield jsonBytes(group);
    group = [];
    most = 0;
  }
  yield jsonBytes(group);
}

/** Splits large values and long arrays into pieces. */
function* flat(parts: JsonParts): Generator<Part> {
  for (const part of parts) {
    if (typeof part === "string") yield part;
    else if (!(part instanceof Float32Array)) yield* part.pieces();
    else if (part.length <= longestRow || encodedRow(part) !== undefined) yield part;
    else
      for (let from = 0; from < part.length; from += longestRow) {
        const piece = jsonBytes([part.subarray(from, from + longestRow)]);
        if (from > 0) piece[0] = comma;
        yield from + longestRow < part.length ? piece.subarray(0, -1) : piece;
      }
  }
}

const longestRow = costs.pieceBytes / 16;
const comma = 0x2c;

/** Writes pieces into one buffer; rows that a worker has already encoded are copied. */
export function jsonBytes(parts: readonly Part[]): Buffer {
  let maxBytes = 0;
  for (const part of parts) maxBytes += maxBytesOf(part);
  const bytes = Buffer.allocUnsafe(maxBytes);
  let at = 0;
  for (const part of parts) at = write(part, bytes, at);
  return bytes.subarray(0, at);
}

function maxBytesOf(part: Part): number {
  if (typeof part === "string") return 3 * part.length;
  if (!(part instanceof Float32Array)) return part.length;
  return encodedRow(part)?.length ?? maxFloat32JsonBytes(part);
}

function write(part: Part, bytes: Buffer, at: number): number {
  if (typeof part === "string") return at + bytes.write(part, at);
  const written = part instanceof Float32Array ? encodedRow(part) : part;
  if (written === undefined) return writeFloat32Json(part as Float32Array, bytes, at);
  bytes.set(written, at);
  return at + written.length;
}

export const commaSeparated = (lists: readonly JsonParts[]): JsonParts =>
  lists.flatMap((parts, index) => (index === 0 ? parts : [",", ...parts]));

/** In the platform's byte order, which is the little-endian one that clients expect on all of Node's platforms but s390x. */
export const base64Of = ({ buffer, byteOffset, byteLength }: Float32Array | Int8Array | Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");
