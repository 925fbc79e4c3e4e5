import { encodedRow } from "sheaf/internal/node";
import { maxFloat32JsonBytes, writeFloat32Json } from "./float32-json.ts";

/** JSON in pieces: text as it is, and float arrays that are written straight into the bytes of the reply. */
export type JsonParts = readonly (string | Float32Array)[];

/** Writes the pieces into one buffer; rows that a worker has written already are copied. */
export function jsonBytes(parts: JsonParts): Buffer {
  let maxBytes = 0;
  for (const part of parts) maxBytes += maxBytesOf(part);
  const bytes = Buffer.allocUnsafe(maxBytes);
  let at = 0;
  for (const part of parts) at = write(part, bytes, at);
  return bytes.subarray(0, at);
}

function maxBytesOf(part: string | Float32Array): number {
  if (typeof part === "string") return 3 * part.length;
  return encodedRow(part)?.length ?? maxFloat32JsonBytes(part);
}

function write(part: string | Float32Array, bytes: Buffer, at: number): number {
  if (typeof part === "string") return at + bytes.write(part, at);
  const written = encodedRow(part);
  if (written === undefined) return writeFloat32Json(part, bytes, at);
  bytes.set(written, at);
  return at + written.length;
}

/** The pieces of each list with a comma between two lists. */
export const commaSeparated = (lists: readonly JsonParts[]): JsonParts =>
  lists.flatMap((parts, index) => (index === 0 ? parts : [",", ...parts]));

/** Little-endian float32, as clients decode it; every platform of Node is little-endian but s390x. */
export const base64Of = ({ buffer, byteOffset, byteLength }: Float32Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");
