import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinModels } from "../../dist/runners/builtin.js";
import type { ModelDefinition } from "../../dist/index.js";
import { doubling, measuringTexts, serving } from "./serving.js";

/** Scores a pair by the letters that they share. */
const pairs: ModelDefinition = {
  name: "pairs",
  task: "rerank",
  input: { kind: "text-pair", maxTokens: 128 },
  output: { kind: "score" },
  run: (items: { query: string; text: string }[]) =>
    items.map(({ query, text }) => ({
      score: [...new Set(query.split(""))].filter((letter) => text.includes(letter)).length,
      tokens: 1,
      truncated: false,
    })),
};

test("a cross-encoder's scores come sorted, with each text's place", async (t) => {
  const server = await serving(t, [doubling(), pairs]);
  await server.ready();
  const { status, json } = await server.post("/rerank", { query: "abc", texts: ["xyz", "cab", "a"] });
  assert.deepEqual([status, json], [200, [1, 2, 0].map((index) => ({ index, score: [0, 3, 1][index] }))]);
});

test("a text embedding model ranks by cosine", async (t) => {
  const server = await serving(t, [measuringTexts()]);
  await server.ready();
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

test("what is wrong is said by its path, before any queue space", async (t) => {
  const server = await serving(t, [doubling(), pairs], { maxInputs: 2 });
  await server.ready();
  const cases: [unknown, string | null][] = [
    [{ query: "a", texts: "b" }, "texts"],
    [{ query: "a", texts: [] }, "texts"],
    [{ query: "a", texts: ["b", "c", "d"] }, "texts"],
    [{ query: "a", texts: ["b", ""] }, "texts[1]"],
    [{ query: "", texts: ["b"] }, "query"],
    [{ texts: ["b"] }, "query"],
    [{ query: "a", texts: ["b"], top: 3 }, "top"],
    [{ query: "a", texts: ["b"], model: "double" }, "model"],
    [{ query: "a", texts: ["b"], model: 5 }, "model"],
  ];
  for (const [body, param] of cases) {
    const { status, json } = await server.post("/rerank", body);
    assert.deepEqual([status, json.error.param], [422, param], JSON.stringify(body));
  }
});
