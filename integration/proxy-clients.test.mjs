// Real clients through `sheaf proxy`, with only their address changed, against an API on this machine: how many requests
// reach it, and what happens to every caller when it fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { embed } from "ai";
import OpenAI from "openai";
import { embeddingApi, vectorOf } from "../test/fakes/embedding-api.mjs";
import { proxy } from "./lib/serving.mjs";

const texts = Array.from({ length: 500 }, (_, i) => `Text number ${i} of this test`);
const apiKey = "sk-test";

/** The API, and the proxy before it in a process of its own; `{ api, baseURL }`. */
async function proxied(t, options, ...flags) {
  const api = await embeddingApi(options);
  t.after(() => api.close());
  const url = await proxy(t, api.baseURL, ...flags);
  return { api, baseURL: `${url}/v1` };
}

const clients = {
  openai: (baseURL) => {
    const client = new OpenAI({ baseURL, apiKey });
    return async (input) => (await client.embeddings.create({ model: "tiny", input })).data[0].embedding;
  },
  "AI SDK": (baseURL) => {
    const model = createOpenAICompatible({ name: "local", baseURL, apiKey }).embeddingModel("tiny");
    return async (value) => (await embed({ model, value })).embedding;
  },
  LangChain: (baseURL) => {
    const embeddings = new OpenAIEmbeddings({ model: "tiny", apiKey, configuration: { baseURL }, maxConcurrency: 500 });
    return (text) => embeddings.embedQuery(text);
  },
};

const assertOwn = (vector, text) =>
  assert.ok(vectorOf(text).every((number, i) => Math.abs(vector[i] - number) < 1e-6), `${text}: ${vector}`); // prettier-ignore

for (const [name, connect] of Object.entries(clients)) {
  test(`${name}: 500 calls at once reach the API as a few requests; each has its own vector`, async (t) => {
    const { api, baseURL } = await proxied(t, { latencyMs: 20 });
    const embedOne = connect(baseURL);
    await Promise.all(texts.map(async (text) => assertOwn(await embedOne(text), text)));
    t.diagnostic(`${api.requests.length} requests`);
    assert.ok(api.requests.length <= 60, `${api.requests.length} requests`);
    assert.ok(api.requests.every(({ headers }) => headers.authorization === `Bearer ${apiKey}`));
  });
}

test("openai: an API that answers 429 to all but a few requests: everybody is answered, in a bounded number of requests", async (t) => {
  const { api, baseURL } = await proxied(t, { window: { requests: 2, ms: 400 } });
  const embedOne = clients.openai(baseURL);
  await Promise.all(texts.map(async (text) => assertOwn(await embedOne(text), text)));
  const refused = api.requests.filter(({ status }) => status === 429).length;
  t.diagnostic(`${api.requests.length} requests, ${refused} refused`);
  assert.ok(api.requests.length <= 200, `${api.requests.length} requests for 500 calls`);
});

test("openai: an API that fails for good is not asked more often than its clients retry, and every caller gets the error", async (t) => {
  const { api, baseURL } = await proxied(t, { fault: () => ({ status: 500, headers: { "retry-after-ms": "1" } }) });
  const embedOne = clients.openai(baseURL);
  const outcomes = await Promise.allSettled(texts.slice(0, 200).map((text) => embedOne(text)));
  assert.ok(outcomes.every(({ reason }) => reason?.status === 500));
  t.diagnostic(`${api.requests.length} requests for 200 calls of three attempts each`);
  assert.ok(api.requests.length <= 100, `${api.requests.length} requests`);
});

test("openai: a connection that is reset mid-batch is the clients' to repeat, and their repetitions share requests", async (t) => {
  const { api, baseURL } = await proxied(t, { fault: (_, number) => (number === 1 ? "reset" : undefined) });
  const embedOne = clients.openai(baseURL);
  await Promise.all(texts.slice(0, 100).map(async (text) => assertOwn(await embedOne(text), text)));
  assert.ok(api.requests.length <= 40, `${api.requests.length} requests`);
});
