import { Tensor } from "../onnx/runtime.ts";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { sizeFor } from "../onnx/fixed-sizes.ts";
import { doubling } from "../../shared/doubling.ts";
import { openSession, type OnnxSession, type SessionSettings } from "../onnx/session.ts";
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

export interface LoadedUseLite {
  readonly session: OnnxSession;
  readonly tokenizer: UnigramTokenizer;
  /** The lengths in tokens that rows are filled up to, on WebGPU; none elsewhere. */
  readonly fixedLengths: readonly number[];
}

export interface UseLiteBatch {
  /** int32 `[texts, longest]`, shorter rows filled up with -1. */
  readonly ids: Int32Array;
  readonly longest: number;
  readonly texts: readonly { readonly tokens: number; readonly truncated: boolean }[];
}

// Control tokens and spare ids: no text produces them.
const reservedIds = 6;
const shortestFixedLength = 8;

/** Builds the graph from the package's weights (a few tenths of a second); blocks its thread, as every run does. */
export async function loadUseLite({
  layout,
  ...settings
}: SessionSettings & { layout?: "packed" | "padded" }): Promise<LoadedUseLite> {
  const weights = readUseLiteWeights();
  // The shapes inside a packed graph follow the number of tokens: on WebGPU each would be compiled for.
  const isFixed = settings.device === "webgpu";
  const session = await openSession(useLiteGraph(weights, layout ?? (isFixed ? "padded" : "packed")), settings);
  const fixedLengths = isFixed ? doubling(shortestFixedLength, useLiteMaxTokens) : [];
  return { session, tokenizer: unigramTokenizer(weights.pieces, reservedIds), fixedLengths };
}

export function tokenizeTexts(texts: readonly string[], { tokenizer, fixedLengths }: LoadedUseLite): UseLiteBatch {
  const rows = texts.map((text) => tokenizer.encode(text));
  const read = rows.map((row) => ({
    tokens: Math.min(row.length, useLiteMaxTokens),
    truncated: row.length > useLiteMaxTokens,
  }));
  const mostTokens = read.reduce((most, { tokens }) => Math.max(most, tokens), 0);
  const longest = fixedLengths.length === 0 ? mostTokens : sizeFor(fixedLengths, mostTokens);
  const ids = new Int32Array(rows.length * longest).fill(useLitePadding);
  rows.forEach((row, i) => ids.set(row.slice(0, useLiteMaxTokens), i * longest));
  return { ids, longest, texts: read };
}

export async function embedTokens({ ids, longest, texts }: UseLiteBatch, model: LoadedUseLite): Promise<Float32Array> {
  const { vector } = await model.session.run({ ids: new Tensor("int32", ids, [texts.length, longest]) }, ["vector"]);
  return vector?.data as Float32Array;
}

export function cutVectors({ texts }: UseLiteBatch, vectors: Float32Array): UseLiteResult[] {
  return texts.map(({ tokens, truncated }, i) => ({
    vector: vectors.subarray(i * useLiteVectorLength, (i + 1) * useLiteVectorLength),
    tokens,
    truncated,
  }));
}

async function warmUpUseLite(model: LoadedUseLite): Promise<void> {
  for (const size of model.session.fixedSizes) {
    const texts = Array.from({ length: size }, () => ({ tokens: 1, truncated: false }));
    for (const longest of model.fixedLengths) {
      await embedTokens({ ids: new Int32Array(size * longest).fill(reservedIds), longest, texts }, model);
    }
  }
}

const worker: WorkerDefinition<string, UseLiteResult, SessionSettings> = defineWorker({
  load: loadUseLite,
  warmUp: warmUpUseLite,
  preprocess: tokenizeTexts,
  run: embedTokens,
  postprocess: cutVectors,
  unload: ({ session }) => session.release(),
});
export default worker;
