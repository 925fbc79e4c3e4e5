import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OnnxGraph } from "../../../../test/support/onnx-writer.mjs";
import { folder as base } from "./made-models.js";

export const width = 4;
export const pieces = "[PAD] [UNK] [CLS] [SEP] the cat sits ##ting dog run ##s . in".split(" ");
export const wordTable: Float32Array = Float32Array.from({ length: pieces.length * width }, (_, i) =>
  Math.sin(i * 1.7),
);
export const typeTable: Float32Array = Float32Array.from({ length: 2 * width }, (_, i) => Math.cos(i * 2.3) / 2);
export const headWeights: Float32Array = Float32Array.from({ length: width * 3 }, (_, i) => Math.sin(i * 0.9 + 1));

const tokenizer = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: {
    type: "TemplateProcessing",
    single: [special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)],
    pair: [special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0), sequence("B", 1), special("[SEP]", 1)],
    special_tokens: {
      "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] },
      "[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] },
    },
  },
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
  },
};

function special(id: string, type_id: number): object {
  return { SpecialToken: { id, type_id } };
}
function sequence(id: string, type_id: number): object {
  return { Sequence: { id, type_id } };
}

/** How a made model differs from a plain export. */
export interface TinyBert {
  /** With labels: a head on the first token. @default none */
  readonly labels?: number;
  /** Mean over the tokens inside the graph. @default false */
  readonly isPooled?: boolean;
  /** @default "float" */
  readonly type?: "float" | "float16" | "double" | "int8" | "uint8";
  /** The output's name. @default as exporters name it */
  readonly output?: string;
  /** Texts of a run, and tokens of a text, where the graph fixes them. */
  readonly axes?: readonly (number | string)[];
}

const casts = { float: 1, uint8: 2, int8: 3, float16: 10, double: 11 } as const;

/** Word and type embeddings and one layer of masked self-attention; with `labels`, a head on the first token. */
export function tinyBert(options: number | TinyBert = {}): Uint8Array {
  const wanted = typeof options === "number" ? { labels: options } : options;
  const { labels = 0, isPooled = false, type = "float", output, axes = ["batch", "tokens"] } = wanted;
  const graph = new OnnxGraph();
  graph.constant("words", "float", [pieces.length, width], wordTable);
  graph.constant("types", "float", [2, width], typeTable);
  const x = graph.node("Add", [
    graph.node("Gather", ["words", "input_ids"]),
    graph.node("Gather", ["types", "token_type_ids"]),
  ]);
  const mask = graph.node("Cast", ["attention_mask"], { to: 1 });
  const hidden = graph.node("Sub", [graph.scalar("one", 1), mask]);
  const bias = graph.node("Unsqueeze", [graph.node("Mul", [hidden, graph.scalar("low", -1e9)]), graph.integers(1)]);
  const scores = graph.node("MatMul", [x, graph.node("Transpose", [x], { perm: [0, 2, 1] })]);
  let states = graph.node("MatMul", [graph.node("Softmax", [graph.node("Add", [scores, bias])], { axis: -1 }), x]);
  let shape = [...axes, width];
  if (labels > 0) {
    graph.constant("head", "float", [width, labels], headWeights.subarray(0, width * labels));
    graph.constant("first", "int64", [], BigInt64Array.of(0n));
    states = graph.node("MatMul", [graph.node("Gather", [states, "first"], { axis: 1 }), "head"]);
    shape = [axes[0]!, labels];
  } else if (isPooled) {
    const counted = graph.node("Mul", [states, graph.node("Unsqueeze", [mask, graph.integers(2)])]);
    const tokens = graph.node("ReduceSum", [mask, graph.integers(1)]);
    states = graph.node("Div", [graph.node("ReduceSum", [counted, graph.integers(1)], { keepdims: 0 }), tokens]);
    shape = [axes[0]!, width];
  }
  if (type === "int8" || type === "uint8") {
    const [scale, zero] = [graph.scalar("scale", 50), graph.scalar("zero", type === "uint8" ? 128 : 0)];
    states = graph.node("Round", [graph.node("Add", [graph.node("Mul", [states, scale]), zero])]);
  }
  if (type !== "float") states = graph.node("Cast", [states], { to: casts[type] });
  const name = output ?? (labels > 0 ? "logits" : isPooled ? "sentence_embedding" : "last_hidden_state");
  graph.rename(states, name);
  const inputs = ["input_ids", "attention_mask", "token_type_ids"].map((input) => ({
    name: input,
    type: "int64" as const,
    axes,
  }));
  return graph.model({ inputs, outputs: [{ name, type, axes: shape }] });
}

/** Writes a folder with a tokenizer; `files` are its other files, JSON unless bytes, none where undefined. */
export function folderOf(name: string, files: Readonly<Record<string, unknown>>): string {
  const path = join(base, name);
  const all: Record<string, unknown> = { "tokenizer.json": tokenizer, ...files };
  for (const [file, content] of Object.entries(all)) {
    if (content === undefined) continue;
    mkdirSync(join(path, file, ".."), { recursive: true });
    writeFileSync(join(path, file), content instanceof Uint8Array ? content : JSON.stringify(content));
  }
  return path;
}

/** The same network in float64, on one text without padding: states of every token. */
export function referenceStates(ids: readonly number[], types = ids.map(() => 0)): number[][] {
  const x = ids.map((id, token) =>
    Array.from({ length: width }, (_, i) => wordTable[id * width + i]! + typeTable[types[token]! * width + i]!),
  );
  return x.map((query) => {
    const scores = x.map((key) => key.reduce((sum, value, i) => sum + value * query[i]!, 0));
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return Array.from({ length: width }, (_, i) =>
      x.reduce((sum, value, j) => sum + (powers[j]! / total) * value[i]!, 0),
    );
  });
}
