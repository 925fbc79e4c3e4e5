import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OnnxGraph } from "../../dist/runners/onnx/writer.js";
import { folder as base } from "./made-models.js";

export const width = 4;
export const pieces = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "the",
  "cat",
  "sits",
  "##ting",
  "dog",
  "run",
  "##s",
  ".",
  "in",
];
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

/** Word and type embeddings and one layer of masked self-attention; with `labels`, a head on the first token. */
export function tinyBert(labels = 0): Uint8Array {
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
  const states = graph.node("MatMul", [graph.node("Softmax", [graph.node("Add", [scores, bias])], { axis: -1 }), x]);
  const inputs = ["input_ids", "attention_mask", "token_type_ids"].map((name) => ({
    name,
    type: "int64" as const,
    axes: ["batch", "tokens"],
  }));
  if (labels === 0) {
    graph.rename(states, "last_hidden_state");
    return graph.model({
      inputs,
      outputs: [{ name: "last_hidden_state", type: "float", axes: ["batch", "tokens", width] }],
    });
  }
  graph.constant("head", "float", [width, labels], headWeights.subarray(0, width * labels));
  graph.constant("first", "int64", [], BigInt64Array.of(0n));
  graph.rename(graph.node("MatMul", [graph.node("Gather", [states, "first"], { axis: 1 }), "head"]), "logits");
  return graph.model({ inputs, outputs: [{ name: "logits", type: "float", axes: ["batch", labels] }] });
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
