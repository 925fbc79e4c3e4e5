import { BatcherError } from "../../core/errors.ts";
import type { EmbeddingsReply } from "./client.ts";

/** The vectors of a reply as numbers, in the order of its inputs. @throws as `embeddingsOf` does. */
export function vectorsOf(reply: EmbeddingsReply | undefined, inputs: number): number[][] {
  return embeddingsOf(reply, inputs).map((embedding) => decode(embedding));
}

/**
 * The embeddings of a reply as they came, in the order of its inputs, which is what `index` says and not where they stand.
 * @throws {BatcherError} `RESULT_COUNT` unless there is exactly one for each input.
 */
export function embeddingsOf(reply: EmbeddingsReply | undefined, inputs: number): unknown[] {
  const data = reply?.data;
  if (!Array.isArray(data)) {
    throw new TypeError(`The API's reply to an embeddings request has no data array; got ${typeOf(reply)}.`);
  }
  const embeddings: unknown[] = Array.from({ length: inputs });
  let known = 0;
  for (const [position, { index = position, embedding }] of (data as EmbeddingsReply["data"]).entries()) {
    if (!Number.isInteger(index) || index < 0 || index >= inputs || embeddings[index] !== undefined) continue;
    embeddings[index] = embedding ?? null;
    known++;
  }
  if (known === inputs && data.length === inputs) return embeddings;
  throw new BatcherError(
    "RESULT_COUNT",
    `The API gave ${data.length} vectors, ${known} of them for one of the ${inputs} inputs each: nobody can tell whose is whose.`,
    { expected: inputs, got: data.length },
  );
}

/** Floats as they are; base64 as float32 in the byte order of every runtime that counts. */
function decode(embedding: unknown): number[] {
  if (Array.isArray(embedding)) return embedding as number[];
  if (typeof embedding !== "string")
    throw new TypeError(`An embedding must be numbers or base64, got ${typeOf(embedding)}.`);
  const binary = atob(embedding);
  const bytes = new Uint8Array(binary.length & ~3);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return Array.from(new Float32Array(bytes.buffer));
}

const typeOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "an array" : typeof value);
