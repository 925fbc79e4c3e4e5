import { fileURLToPath } from "node:url";
import { Tensor } from "../onnx/runtime.ts";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { sizeFor } from "../onnx/fixed-sizes.ts";
import { doubling } from "../../shared/doubling.ts";
import { openSession, type OnnxSession, type SessionSettings } from "../onnx/session.ts";
import { unigramTokenizer, type UnigramTokenizer } from "../text/unigram-tokenizer.ts";
import { readPieces, readWeights } from "./package.ts";

const vectorLength = 512;
const maxTokens = 128;
/** Fills up a shorter text's row of token ids. */
const padding = -1;

export interface UseLiteResult {
  /** 512 numbers, of length 1. */
  readonly vector: Float32Array;
  /** Tokens that were read: at most 128. */
  readonly tokens: number;
  /** Whether the text had more. */
  readonly truncated: boolean;
  /** Token count of a truncated text; a lower bound unless `isReadWhole`. */
  readonly textTokens?: number;
  readonly isReadWhole?: boolean;
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
  readonly texts: readonly Omit<UseLiteResult, "vector">[];
}

// Control tokens and spare ids: no text produces them.
const reservedIds = 6;
const shortestFixedLength = 8;

/**
 * Universal Sentence Encoder Lite (arXiv 1803.11175) as ONNX without its weights: `ids` int32 `[batch, tokens]`, shorter rows
 * filled up with -1 → `vector` float32 `[batch, 512]`, each of length 1.
 *
 * `packed`: the dense layers, nearly all of the work, see the real tokens only, `[all tokens, width]`; attention alone is laid
 * out as `[batch, tokens]`. `padded` computes every position.
 */
const graphOf = (layout: "packed" | "padded"): string =>
  fileURLToPath(new URL(`../../../src/runners/use-lite/${layout}.onnx`, import.meta.url));

/** Opens the graph with the package's weights; blocks its thread, as every run does. */
export async function loadUseLite({
  layout,
  ...settings
}: SessionSettings & { layout?: "packed" | "padded" }): Promise<LoadedUseLite> {
  // The shapes inside a packed graph follow the number of tokens: on WebGPU each would be compiled for.
  const isFixed = settings.device === "webgpu";
  const path = graphOf(layout ?? (isFixed ? "padded" : "packed"));
  const session = await openSession(path, { ...settings, weights: readWeights() });
  const fixedLengths = isFixed ? doubling(shortestFixedLength, maxTokens) : [];
  return { session, tokenizer: unigramTokenizer(readPieces(), reservedIds), fixedLengths };
}

export function tokenizeTexts(texts: readonly string[], { tokenizer, fixedLengths }: LoadedUseLite): UseLiteBatch {
  const rows = texts.map((text) => tokenizer.encode(text, maxTokens));
  const read = rows.map(({ length }) =>
    length > maxTokens
      ? { tokens: maxTokens, truncated: true, textTokens: length, isReadWhole: false }
      : { tokens: length, truncated: false },
  );
  const mostTokens = read.reduce((most, { tokens }) => Math.max(most, tokens), 0);
  const longest = fixedLengths.length === 0 ? mostTokens : sizeFor(fixedLengths, mostTokens);
  const ids = new Int32Array(rows.length * longest).fill(padding);
  rows.forEach((row, i) => ids.set(row.slice(0, maxTokens), i * longest));
  return { ids, longest, texts: read };
}

export async function embedTokens({ ids, longest, texts }: UseLiteBatch, model: LoadedUseLite): Promise<Float32Array> {
  const { vector } = await model.session.run({ ids: new Tensor("int32", ids, [texts.length, longest]) }, ["vector"]);
  return vector?.data as Float32Array;
}

export function cutVectors({ texts }: UseLiteBatch, vectors: Float32Array): UseLiteResult[] {
  return texts.map((text, i) => ({ vector: vectors.subarray(i * vectorLength, (i + 1) * vectorLength), ...text }));
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
