import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  cutVectors,
  embedTokens,
  loadUseLite,
  tokenizeTexts,
  type LoadedUseLite,
  type UseLiteResult,
} from "../../dist/runners/use-lite/use-lite-worker.js";
import { builtinModels } from "../../dist/runners/builtin.js";
import { useLiteReference } from "./use-lite-reference.js";

const model = await loadUseLite({});
after(() => model.session.release());

async function embed(texts: readonly string[], on: LoadedUseLite = model): Promise<UseLiteResult[]> {
  const batch = tokenizeTexts(texts, on);
  return cutVectors(batch, await embedTokens(batch, on));
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  assert.equal(a.length, b.length);
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] as number))), 0);
}

test("vectors are the reference's within 1e-5, in one batch of all lengths", async () => {
  const results = await embed(useLiteReference.map(({ text }) => text));
  useLiteReference.forEach(({ text, vector }, i) => {
    const difference = largestDifference(results[i]?.vector as Float32Array, vector);
    assert.ok(difference < 1e-5, `${JSON.stringify(text.slice(0, 40))}: ${difference}`);
  });
  assert.deepEqual(builtinModels["use-lite"]().output, { kind: "vector", length: results[0]!.vector.length });
});

test("a text's vector is the same alone and in a batch within 1e-6", async () => {
  const texts = useLiteReference.map(({ text }) => text);
  const together = await embed(texts);
  for (const [i, text] of texts.entries()) {
    const [alone] = await embed([text]);
    const difference = largestDifference(alone?.vector as Float32Array, together[i]?.vector as Float32Array);
    assert.ok(difference < 1e-6, `${JSON.stringify(text.slice(0, 40))}: ${difference}`);
  }
});

test("tokens are counted, and a text of more than 128 tokens is cut and says so", async () => {
  const results = await embed(["word ".repeat(128).trim(), "word ".repeat(129).trim(), "word ".repeat(20_000), "a"]);
  assert.deepEqual(
    results.map(({ tokens, truncated }) => [tokens, truncated]),
    [
      [128, false],
      [128, true],
      [128, true],
      [1, false],
    ],
  );
  assert.ok(largestDifference(results[0]?.vector as Float32Array, results[1]?.vector as Float32Array) < 1e-6);
});

test("every vector has length 1, a text with no token included", async () => {
  const results = await embed(["", "\u200b", "\ud800", "\u0000", "\u{10ffff}", "x", "🙂".repeat(5000)]);
  for (const { vector } of results) {
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-5);
  }
});

test("the padded layout, for WebGPU, gives the same vectors", async () => {
  const padded = await loadUseLite({ layout: "padded" });
  const batch = tokenizeTexts(["a", "How do I batch concurrent requests?", "hello"], model);
  const difference = largestDifference(await embedTokens(batch, padded), await embedTokens(batch, model));
  await padded.session.release();
  assert.ok(difference < 1e-6, String(difference));
});
