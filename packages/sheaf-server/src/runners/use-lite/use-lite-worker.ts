import { Tensor, type InferenceSession } from "../onnx/runtime.ts";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { openSession, type SessionSettings } from "../onnx/session.ts";
import { unigramTokenizer, type UnigramTokenizer } from "../text/unigram-tokenizer.ts";
import { useLiteGraph, useLiteMaxTokens, useLitePadding, useLiteVectorLength } from "./graph.ts";
import { readUseLiteWeights } from "./weights.ts";

export interface UseLiteResult {
  /** 512 numbers, of length 1. */
  readonly vector: Float32Array;
  /** Tokens that were read: at most 128. */
  readonly tokens: number;
  /** Whether the text had more. */
  readonly truncated: boolean;
}

export interface UseLiteModel {
  readonly session: InferenceSession;
  readonly tokenizer: UnigramTokenizer;
}

export interface UseLiteBatch {
  /** int32 `[texts, longest]`, shorter rows filled up with -1. */
  readonly ids: Int32Array;
  readonly longest: number;
  readonly texts: readonly { readonly tokens: number; readonly truncated: boolean }[];
}

// Control tokens and spare ids: no text produces them.
const reservedIds = 6;

/** Builds the graph from the package's weights (a few tenths of a second); blocks its thread, as every run does. */
export async function loadUseLite({
  layout,
  ...settings
}: SessionSettings & { layout?: "packed" | "padded" }): Promise<UseLiteModel> {
  const weights = readUseLiteWeights();
  const { session } = await openSession(useLiteGraph(weights, layout), settings);
  return { session, tokenizer: unigramTokenizer(weights.pieces, reservedIds) };
}

export function tokenizeTexts(texts: readonly string[], { tokenizer }: UseLiteModel): UseLiteBatch {
  const rows = texts.map((text) => tokenizer.encode(text));
  const read = rows.map((row) => ({
    tokens: Math.min(row.length, useLiteMaxTokens),
    truncated: row.length > useLiteMaxTokens,
  }));
  const longest = read.reduce((most, { tokens }) => Math.max(most, tokens), 0);
  const ids = new Int32Array(rows.length * longest).fill(useLitePadding);
  rows.forEach((row, i) => ids.set(row.slice(0, useLiteMaxTokens), i * longest));
  return { ids, longest, texts: read };
}

export async function embedTokens({ ids, longest, texts }: UseLiteBatch, model: UseLiteModel): Promise<Float32Array> {
  const { vector } = await model.session.run({ ids: new Tensor("int32", ids, [texts.length, longest]) });
  return vector?.data as Float32Array;
}

export function cutVectors({ texts }: UseLiteBatch, vectors: Float32Array): UseLiteResult[] {
  return texts.map(({ tokens, truncated }, i) => ({
    vector: vectors.subarray(i * useLiteVectorLength, (i + 1) * useLiteVectorLength),
    tokens,
    truncated,
  }));
}

const worker: WorkerDefinition<string, UseLiteResult, SessionSettings> = defineWorker({
  load: loadUseLite,
  preprocess: tokenizeTexts,
  run: embedTokens,
  postprocess: cutVectors,
  unload: ({ session }) => session.release(),
});
export default worker;
