import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinModels } from "../../dist/runners/builtin.js";
import type { ModelDefinition } from "../../dist/index.js";
import type { Reply } from "../asking.js";
import { measuringTexts, serving } from "./serving.js";
import { rankingPairs } from "./text-models.js";

/** Scores a pair by its text's length, as a folder's cross-encoder does; more than 9 characters are cut. */
const judging: ModelDefinition = {
  ...rankingPairs,
  name: "judge",
  input: { kind: "text-pair", maxTokens: 9 },
  run: (items: { text: string }[]) =>
    items.map(({ text }) => ({ score: 7, logit: text.length - 2, tokens: 1, truncated: text.length > 9 })),
};

test("raw_scores gives the logits, else scores are between 0 and 1; return_text gives the texts", async (t) => {
  const { post } = await serving(t, [judging]);
  const body = { query: "q", texts: ["a", "four"] };
  assert.deepEqual((await post("/rerank", { ...body, raw_scores: true })).json, [
    { index: 1, score: 2 },
    { index: 0, score: -1 },
  ]);
  const { json } = await post("/rerank", { ...body, raw_scores: false, return_text: true });
  assert.deepEqual(
    json.map(({ index, text }: { index: number; text: string }) => [index, text]),
    [
      [1, "four"],
      [0, "a"],
    ],
  );
  assert.ok(
    Math.abs(json[0].score - 1 / (1 + Math.exp(-2))) < 1e-12 && Math.abs(json[1].score - 1 / (1 + Math.E)) < 1e-12,
  );
});

test("truncation_direction may be right, as litellm always sends it; left is refused with the reason", async (t) => {
  const { post } = await serving(t, [rankingPairs]);
  const body = { query: "abc", texts: ["xyz", "cab"], truncate: false };
  const plain = await post("/rerank", body);
  for (const direction of ["Right", "right", null])
    assert.deepEqual((await post("/rerank", { ...body, truncation_direction: direction })).json, plain.json);
  for (const direction of ["Left", "left", "up", 7]) {
    const { status, json } = await post("/rerank", { ...body, truncation_direction: direction });
    assert.deepEqual([status, json.error.param], [422, "truncation_direction"]);
    assert.match(json.error.message, /must be "right": texts are cut at their end/);
  }
});

test("a text embedding model ranks by cosine", async (t) => {
  const server = await serving(t, [measuringTexts()]);
  const { json } = await server.post("/rerank", { query: "aaa", texts: ["b".repeat(80), "aaa"], model: "measure" });
  assert.deepEqual(
    json.map(({ index }: { index: number }) => index),
    [1, 0],
  );
  assert.ok(Math.abs(json[0].score - 1) < 1e-9 && json[1].score < 0.99);
});

test("use-lite says that it ranks by similarity", () => {
  assert.match(builtinModels["use-lite"]().note ?? "", /\/rerank, by the cosine/);
});

test("a query that would be read too often is refused: each of the texts gets a copy", async (t) => {
  const server = await serving(t, [rankingPairs], { maxTextChars: 1000 });
  const rank = (chars: number, texts: number): Promise<Reply> =>
    server.post("/rerank", { query: "q".repeat(chars), texts: Array.from({ length: texts }, () => "a") });
  assert.equal((await rank(200, 500)).status, 200);
  const { status, json } = await rank(201, 500);
  assert.deepEqual([status, json.error.param], [422, "query"]);
  assert.match(json.detail, /query must be at most 200 characters beside 500 texts/);
});
