// embed() of the AI SDK, called 200 times at once, becomes a few requests: one middleware, and no other line changes.
// With EMBEDDINGS_URL and EMBEDDINGS_KEY set it asks that API; without, one of this process.
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, wrapEmbeddingModel } from "ai";
import { coalesce } from "sheaf/adapters/ai-sdk";
import { localApi } from "./local-api.mjs";

const { EMBEDDINGS_URL: url, EMBEDDINGS_KEY: apiKey = "none" } = process.env;
const local = url ? undefined : await localApi();
const provider = createOpenAICompatible({ name: "example", baseURL: url ?? local.baseURL, apiKey });

// Once, where the model is made: calls share requests only with calls of the same wrapper.
let batcher;
const model = wrapEmbeddingModel({
  model: provider.embeddingModel("text-embedding-3-small"),
  middleware: coalesce({ onBatcher: (made) => (batcher = made) }),
});

const values = Array.from({ length: 200 }, (_, i) => `Text number ${i}`);
const results = await Promise.all(values.map((value) => embed({ model, value })));
const { batches, meanBatchSize } = batcher.stats();
console.log(`${results.length} embed() calls, ${batches} requests of ${meanBatchSize} texts on average`);
assert.ok(batches <= 10);
if (local !== undefined) {
  for (const [i, { embedding }] of results.entries()) assert.equal(embedding[0], values[i].length);
}
local?.close();
