import { describe } from "../../shared/describe.ts";
/** The vector of a reply: finite numbers, at least one. @throws {TypeError} for anything else, saying what it got. */
export function vectorOf(embedding: unknown): number[] {
  if (!Array.isArray(embedding) && !(embedding instanceof Float32Array) && !(embedding instanceof Float64Array)) {
    throw new TypeError(`An embedding must be numbers, got ${describe(embedding)}.`);
  }
  if (embedding.length === 0) throw new TypeError("An embedding must be numbers, got an empty one.");
  const vector = embedding as ArrayLike<unknown> as number[];
  for (let i = 0; i < vector.length; i++) {
    const number: unknown = vector[i];
    if (typeof number === "number" && Number.isFinite(number)) continue;
    const got = describe(number);
    throw new TypeError(`An embedding must be finite numbers, got ${got} at ${i}.`);
  }
  return vector;
}

/** Each vector, or an error in the place of an invalid one. */
export function vectorsOrErrors(
  embeddings: readonly unknown[],
  read: (embedding: unknown) => number[] = vectorOf,
): (number[] | Error)[] {
  return embeddings.map((embedding) => {
    try {
      return read(embedding);
    } catch (error) {
      return error as Error;
    }
  });
}
