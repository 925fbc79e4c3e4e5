import type { ModelDefinition } from "../../dist/index.js";

/** Labels a text by its length; more than 9 characters are cut. */
export const judgingTexts: ModelDefinition = {
  name: "judge",
  input: { kind: "text", maxTokens: 9 },
  output: { kind: "labels", labels: ["short", "long"] },
  run: (texts: string[]) =>
    texts.map((text) => ({
      scores: Float32Array.of(1 / text.length, 1 - 1 / text.length),
      logits: Float32Array.of(-text.length, text.length),
      tokens: 1,
      truncated: text.length > 9,
    })),
};

/** A token is a word; its vector has the word's length and place. */
export const tokenVectors: ModelDefinition = {
  name: "tokens",
  input: { kind: "text" },
  output: { kind: "tensors", tensors: [{ name: "vectors", datatype: "FP32", shape: [null, 2] }] },
  run: (texts: string[]) =>
    texts.map((text) => {
      const words = text.split(" ");
      const vectors = Float32Array.from(words.flatMap((word, index) => [word.length, index]));
      return { vectors, "shape:vectors": Int32Array.of(words.length, 2) };
    }),
};

/** A vector of a text's length and a constant, not of length 1; texts of more than 9 characters are cut. */
export const embeddingTexts: ModelDefinition = {
  name: "embed",
  input: { kind: "text", maxTokens: 9 },
  output: { kind: "vector", length: 2, dimensions: [1], pooling: "cls" },
  run: (texts: string[]) =>
    texts.map((text) => ({ vector: Float32Array.of(text.length, 4), tokens: 2, truncated: text.length > 9 })),
};

/** Scores a pair by the letters that they share. */
export const rankingPairs: ModelDefinition = {
  name: "pairs",
  input: { kind: "text-pair", maxTokens: 128 },
  output: { kind: "score" },
  run: (items: { query: string; text: string }[]) =>
    items.map(({ query, text }) => ({
      score: [...new Set(query.split(""))].filter((letter) => text.includes(letter)).length,
      tokens: 3,
      truncated: false,
    })),
};
