// The clients that people point at an OpenAI-compatible server, against the built server with its built-in model.
import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { APICallError, embed, embedMany } from "ai";
import OpenAI, { APIError } from "openai";
import { serve } from "./lib/serving.mjs";

const model = "use-lite";
const texts = ["The cat sits outside", "A man is playing guitar", "The new movie is awesome"];
const close = [];
let baseURL;
let expected;

before(async () => {
  const url = await serve({ after: (end) => close.push(end) });
  baseURL = `${url}/v1`;
  const { data } = await openai().embeddings.create({ model, input: texts, encoding_format: "float" });
  expected = data.map(({ embedding }) => embedding);
});
after(() => Promise.all(close.map((end) => end())));

const openai = () => new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const aiModel = () => createOpenAICompatible({ name: "sheaf", baseURL }).embeddingModel(model);

async function runs() {
  const text = await (await fetch(new URL("/metrics", baseURL))).text();
  return Number(/^sheaf_batch_size_items_count\{[^}]*\} (\d+)$/m.exec(text)[1]);
}

function assertSame(actual, wanted) {
  assert.equal(actual.length, wanted.length);
  const difference = Math.max(...wanted.map((value, i) => Math.abs(value - actual[i])));
  assert.ok(difference < 1e-6, `differs by ${difference}`);
}

test("openai: base64, its default, gives the same vectors as floats", async () => {
  const { data, usage } = await openai().embeddings.create({ model, input: texts });
  for (const [i, { embedding }] of data.entries()) assertSame(embedding, expected[i]);
  assert.ok(usage.total_tokens >= 12);
});

test("AI SDK: embed and embedMany give the same vectors", async () => {
  const one = await embed({ model: aiModel(), value: texts[0] });
  assertSame(one.embedding, expected[0]);
  assert.ok(one.usage.tokens > 0);
  const many = await embedMany({ model: aiModel(), values: texts });
  for (const [i, embedding] of many.embeddings.entries()) assertSame(embedding, expected[i]);
});

test("AI SDK: 50 single embeds at once share batches, and each gets its own vector", async () => {
  const values = Array.from({ length: 50 }, (_, i) => `${texts[i % 3]} ${i}`);
  const before = await runs();
  const batched = await Promise.all(values.map((value) => embed({ model: aiModel(), value })));
  const needed = (await runs()) - before;
  assert.ok(needed < 50, `${needed} runs for 50 texts`);
  const { embeddings } = await embedMany({ model: aiModel(), values });
  for (const [i, { embedding }] of batched.entries()) assertSame(embedding, embeddings[i]);
});

test("LangChain: embedQuery and embedDocuments give the same vectors", async () => {
  const embeddings = new OpenAIEmbeddings({ model, apiKey: "none", configuration: { baseURL } });
  assertSame(await embeddings.embedQuery(texts[1]), expected[1]);
  for (const [i, vector] of (await embeddings.embedDocuments(texts)).entries()) assertSame(vector, expected[i]);
});

const wrong = [
  ["an empty text", model, "", 422, /must be a text that is not empty, got the text ""/],
  ["a text over the limit", model, "x".repeat(100_001), 422, /at most 100000 characters/],
  ["an unknown model", "ada-002", "x", 404, /no model "ada-002"; served are: use-lite/],
];

for (const [name, wrongModel, input, status, message] of wrong) {
  test(`openai shows the message of ${name}`, async () => {
    await assert.rejects(openai().embeddings.create({ model: wrongModel, input }), (error) => {
      assert.ok(error instanceof APIError);
      assert.equal(error.status, status);
      assert.match(error.message, message);
      return true;
    });
  });

  test(`the AI SDK shows the message of ${name}`, async () => {
    const other = createOpenAICompatible({ name: "sheaf", baseURL }).embeddingModel(wrongModel);
    await assert.rejects(embed({ model: other, value: input, maxRetries: 0 }), (error) => {
      assert.ok(APICallError.isInstance(error));
      assert.equal(error.statusCode, status);
      assert.match(error.message, message);
      return true;
    });
  });
}
