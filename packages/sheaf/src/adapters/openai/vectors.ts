import { BatcherError } from "../../core/contract/errors.ts";
import { describe } from "../../shared/describe.ts";
import { vectorOf, vectorsOrErrors } from "../shared/vector.ts";
import type { EmbeddingsReply } from "./client.ts";

/**
 * The vectors of a reply as numbers, in the order of its inputs; an `Error` in the place of one that is none.
 * @throws as `embeddingsOf` does.
 */
export function vectorsOf(
  reply: EmbeddingsReply | undefined,
  inputs: number,
  dimensions?: number,
): (number[] | Error)[] {
  return vectorsOrErrors(embeddingsOf(reply, inputs), (embedding) =>
    vectorOf(typeof embedding === "string" ? floatsOf(embedding, dimensions) : embedding),
  );
}

/**
 * The embeddings of a reply as they came, in the order of its inputs, by their `index`, not by their position.
 * @throws {BatcherError} `RESULT_COUNT` unless there is exactly one for each input.
 */
export function embeddingsOf(reply: EmbeddingsReply | undefined, inputs: number): unknown[] {
  const data = reply?.data;
  if (!Array.isArray(data)) {
    throw new TypeError(`The API's reply to an embeddings request has no data array; got ${describe(reply)}.`);
  }
  const embeddings: unknown[] = Array.from({ length: inputs });
  let known = 0;
  for (const [position, entry] of (data as readonly (Partial<EmbeddingsReply["data"][number]> | null)[]).entries()) {
    const { index = position, embedding } = entry ?? {};
    if (!Number.isInteger(index) || index < 0 || index >= inputs || embeddings[index] !== undefined) continue;
    embeddings[index] = embedding ?? null;
    known++;
  }
  if (known === inputs && data.length === inputs) return embeddings;
  throw new BatcherError(
    "RESULT_COUNT",
    `The API returned ${data.length} vectors, of which ${known} match one of the ${inputs} inputs: they cannot be matched to the inputs.`,
    { expected: inputs, received: data.length },
  );
}

/** No embedding has a larger number. Of a float64 read as two float32, one is noise and often larger. */
const largest = 1e9;
/** Fewer numbers prove nothing. */
const fewestNumbers = 8;

/** Of base64: float32 or float64, in the byte order of every runtime that counts. */
function floatsOf(base64: string, dimensions: number | undefined): number[] {
  const bytes = bytesOf(base64);
  if (bytes === undefined || bytes.length % 4 !== 0) {
    throw new TypeError(
      `An embedding must be numbers or float32 in base64, got a text of ${base64.length} characters.`,
    );
  }
  const floats = new Float32Array(bytes.buffer);
  return Array.from(isFloat64(floats, dimensions) ? new Float64Array(bytes.buffer) : floats);
}

function isFloat64(floats: Float32Array, dimensions: number | undefined): boolean {
  if (floats.length % 2 !== 0 || floats.length === dimensions) return false;
  if (floats.length === 2 * (dimensions ?? 0)) return true;
  if (floats.length < fewestNumbers) return false;
  const isNoise = floats.some((number) => !(Math.abs(number) < largest));
  return isNoise || floats.every((number, i) => i % 2 === 1 || number === 0);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
