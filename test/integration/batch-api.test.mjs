// Mistral's own client, whose batch jobs have other names and shapes than OpenAI's, with the faults that openai's client is tried with.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Mistral } from "@mistralai/mistralai";
import { batchApi } from "sheaf/adapters/batch-api";
import { batchApi as fakeApi } from "../fakes/batch-api.mjs";
import { vectorOf } from "../fakes/embedding-api.mjs";

test("Mistral's client runs batches through lost connections, an expired batch and a cut download, and pays once", async (t) => {
  const faults = { upload: "reset", create: "late", retrieve: 429, content: "cut", delete: 500 };
  const api = await fakeApi({
    fault: (kind, n) => (n === 1 ? faults[kind] : undefined),
    outcome: (n) => (n === 1 ? "expired" : "completed"),
  });
  t.after(() => api.close());
  const embed = batchApi(new Mistral({ apiKey: "none", serverURL: new URL(api.url).origin }), {
    endpoint: "/v1/embeddings",
    body: (input) => ({ model: "mistral-embed", input }),
    result: ({ data }) => data[0].embedding,
    maxBatchSize: 10,
    pollMs: 10,
  });
  const texts = Array.from({ length: 25 }, (_, n) => (n === 7 ? "a bad one" : `text ${n}`));
  const outcomes = await embed.settle(texts);
  assert.match(outcomes[7].reason.message, /The input is bad/);
  for (const [n, { value }] of outcomes.entries()) if (n !== 7) assert.deepEqual(value, vectorOf(texts[n]));
  assert.deepEqual([...api.paid.values()], Array(24).fill(1));
  await embed.close();
  assert.equal(api.files.size, 0);
});

test("Mistral's client cancels a batch that nobody waits for, and says why one failed", async (t) => {
  const api = await fakeApi({ outcome: (n) => (n === 1 ? "held" : "failed") });
  t.after(() => api.close());
  const client = new Mistral({ apiKey: "none", serverURL: new URL(api.url).origin });
  const embed = batchApi(client, { endpoint: "/v1/embeddings", body: (input) => ({ model: "m", input }), pollMs: 10 });
  const controller = new AbortController();
  const left = embed.many(["a"], { signal: controller.signal });
  while (api.batches.size === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort();
  await assert.rejects(left, { name: "AbortError" });
  await assert.rejects(embed.many(["b"]), /The fake refuses this file/);
  await embed.close();
  assert.equal(api.batches.get([...api.batches.keys()][0]).status, "cancelled");
});
