import { maxFloat32JsonBytes, writeFloat32Json } from "./float32-json.ts";

/** JSON in pieces: text as it is, and float arrays that are written straight into the bytes of the reply. */
export type JsonParts = readonly (string | Float32Array)[];

/** Writes the pieces into one buffer. */
export function jsonBytes(parts: JsonParts): Buffer {
  let maxBytes = 0;
  for (const part of parts)
    maxBytes += typeof part === "string" ? 3 * part.length : 2 + maxFloat32JsonBytes * part.length;
  const bytes = Buffer.allocUnsafe(maxBytes);
  let at = 0;
  for (const part of parts)
    at = typeof part === "string" ? at + bytes.write(part, at) : writeFloat32Json(part, bytes, at);
  return bytes.subarray(0, at);
}

/** The pieces of each list with a comma between two lists. */
export const commaSeparated = (lists: readonly JsonParts[]): JsonParts =>
  lists.flatMap((parts, index) => (index === 0 ? parts : [",", ...parts]));
