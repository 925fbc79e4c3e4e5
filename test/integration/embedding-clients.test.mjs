// Real clients of embeddings APIs, through Sheaf's adapters, against an API on this machine that has OpenAI's shapes and
// limits: how many requests they make, and what happens to every caller when the API fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAICompatible as createOpenAICompatible7 } from "@ai-sdk/openai-compatible7";
import { OpenAIEmbeddings } from "@langchain/openai";
import * as ai6 from "ai";
import * as ai7 from "ai7";
import OpenAI, { APIError } from "openai";
import { coalesce } from "../../packages/sheaf/dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../../packages/sheaf/dist/adapters/langchain.js";
import { openaiEmbeddings, openaiFetch } from "../../packages/sheaf/dist/adapters/openai/index.js";
import { embeddingApi, vectorOf } from "../fakes/embedding-api.mjs";
import { untilTrue } from "./lib/until.mjs";

const apiKey = "sk-test";
const texts = Array.from({ length: 500 }, (_, i) => `Text number ${i} of this test`);

/** An API until the test ends. */
async function api(t, options) {
  const started = await embeddingApi(options);
  t.after(() => started.close());
  return started;
}

/** Each makes `embed(text) → vector` over a client, coalesced or as the client does it by itself. */
const clients = {
  openai: ({ baseURL }, options) => {
    const client = new OpenAI({ baseURL, apiKey });
    if (options !== undefined) return openaiEmbeddings(client, { model: "tiny", ...options });
    return async (input) => (await client.embeddings.create({ model: "tiny", input })).data[0].embedding;
  },
  "plain fetch": ({ baseURL }, options) =>
    openaiEmbeddings(openaiFetch({ baseURL, apiKey }), {
      model: "tiny",
      ...(options ?? { maxBatchSize: 1, concurrency: 500 }),
    }),
  "AI SDK 6": aiClient(ai6, createOpenAICompatible),
  "AI SDK 7": aiClient(ai7, createOpenAICompatible7),
  LangChain: ({ baseURL }, options) => {
    const plain = new OpenAIEmbeddings({ model: "tiny", apiKey, configuration: { baseURL }, maxRetries: 2 });
    const embeddings = options === undefined ? plain : new CoalescedEmbeddings(plain, options);
    return (text) => embeddings.embedQuery(text);
  },
  "LangChain made with a fetch": ({ baseURL }, options) => {
    const make = (fetch) =>
      new OpenAIEmbeddings({ model: "tiny", apiKey, configuration: { baseURL, fetch }, maxRetries: 2 });
    const embeddings = options === undefined ? make(fetch) : new CoalescedEmbeddings(make, options);
    return (text) => embeddings.embedQuery(text);
  },
};

function aiClient({ embed, wrapEmbeddingModel }, create) {
  return ({ baseURL }, options) => {
    const plain = create({ name: "local", baseURL, apiKey }).embeddingModel("tiny");
    const model = options === undefined ? plain : wrapEmbeddingModel({ model: plain, middleware: coalesce(options) });
    return async (value) => (await embed({ model, value })).embedding;
  };
}

const assertOwn = (vector, text) => {
  const expected = vectorOf(text);
  assert.equal(vector.length, expected.length);
  for (const [i, number] of expected.entries()) assert.ok(Math.abs(vector[i] - number) < 1e-6, `${text}: ${vector}`);
};

for (const [name, connect] of Object.entries(clients)) {
  test(`${name}: 500 calls at once take 500 requests by themselves and few with Sheaf; each has its own vector`, async (t) => {
    const receiver = await api(t, { latencyMs: 5 });
    const alone = connect(receiver);
    await Promise.all(texts.map(async (text) => assertOwn(await alone(text), text)));
    assert.equal(receiver.requests.length, 500);

    const together = connect(receiver, {});
    await Promise.all(texts.map(async (text) => assertOwn(await together(text), text)));
    const requests = receiver.requests.slice(500);
    t.diagnostic(`${requests.length} requests of ${requests.map(({ inputs }) => inputs.length).join(", ")}`);
    assert.ok(requests.length <= 10, `${requests.length} requests`);
    assert.equal(
      requests.reduce((sum, { inputs }) => sum + inputs.length, 0),
      500,
    );
    assert.ok(requests.every(({ status, headers }) => status === 200 && headers.authorization === `Bearer ${apiKey}`));
  });

  test(`${name}: a poisoned text fails its own caller only, with the API's message`, async (t) => {
    const poison = texts[137];
    const receiver = await api(t, { isPoison: (text) => text === poison });
    const embed = connect(receiver, {});
    const outcomes = await Promise.allSettled(texts.slice(100, 200).map((text) => embed(text)));
    const failed = outcomes.filter(({ status }) => status === "rejected");
    assert.equal(failed.length, 1);
    assert.match(outcomes[37].reason.message, /this text cannot be embedded/);
    assert.ok(receiver.requests.length <= 4, `${receiver.requests.length} requests`);
  });

  test(`${name}: an API that answers 429 to all but a few requests is asked a few times, and everybody is answered`, async (t) => {
    const receiver = await api(t, { window: { requests: 2, ms: 400 } });
    const embed = connect(receiver, { maxBatchSize: 50 });
    await Promise.all(texts.map(async (text) => assertOwn(await embed(text), text)));
    const { length } = receiver.requests;
    const refused = receiver.requests.filter(({ status }) => status === 429).length;
    t.diagnostic(`${length} requests, ${refused} refused`);
    // 10 batches; those in flight when the first is refused are refused too, once each round.
    assert.ok(length <= 60, `${length} requests`);
  });

  test(`${name}: an API that fails for good is asked a bounded number of times, and every caller gets the error`, async (t) => {
    const receiver = await api(t, { fault: () => ({ status: 500, headers: { "retry-after-ms": "1" } }) });
    const embed = connect(receiver, {});
    const outcomes = await Promise.allSettled(texts.slice(0, 300).map((text) => embed(text)));
    assert.ok(outcomes.every(({ status }) => status === "rejected"));
    t.diagnostic(`${receiver.requests.length} requests for 300 calls`);
    // 900 by themselves. 3 batches, three times each; the AI SDK's callers come back one by one, and may share a few more.
    assert.ok(receiver.requests.length <= 30, `${receiver.requests.length} requests`);
  });
}

test("openai: a connection that is lost mid-batch is tried again, and everybody is answered", async (t) => {
  const receiver = await api(t, { fault: (_, number) => (number === 1 ? "reset" : undefined) });
  const embed = clients.openai(receiver, {});
  await Promise.all(texts.slice(0, 50).map(async (text) => assertOwn(await embed(text), text)));
  assert.equal(receiver.requests.length, 2);
});

test("openai: an API that never answers costs each caller its timeoutMs, and the request is ended", async (t) => {
  const receiver = await api(t, { fault: () => "hang" });
  // Long enough for the request to arrive, on a busy machine too.
  const embed = clients.openai(receiver, { timeoutMs: 2000 });
  const outcomes = await Promise.allSettled(texts.slice(0, 50).map((text) => embed(text)));
  assert.ok(outcomes.every(({ reason }) => reason?.code === "TIMEOUT"));
  assert.equal(receiver.requests.length, 1);
  await untilTrue(() => receiver.requests[0].gone);
});

test("openai: the API's 400 has the status, code and param that openai's own error has", async (t) => {
  const receiver = await api(t, { isPoison: (text) => text === "b" });
  const embed = clients.openai(receiver, {});
  const [, refused] = await Promise.allSettled(["a", "b", "c"].map((text) => embed(text)));
  assert.ok(refused.reason instanceof APIError);
  const { status, code, param } = refused.reason;
  assert.deepEqual({ status, code, param }, { status: 400, code: "invalid_value", param: "input[1]" });
});

for (const [name, { embed, embedMany, wrapEmbeddingModel }, create] of [
  ["AI SDK 6", ai6, createOpenAICompatible],
  ["AI SDK 7", ai7, createOpenAICompatible7],
]) {
  test(`${name}: embedMany and embed share requests; usage adds up to what the API counted`, async (t) => {
    const receiver = await api(t, {});
    const plain = create({ name: "local", baseURL: receiver.baseURL, apiKey }).embeddingModel("tiny");
    const model = wrapEmbeddingModel({ model: plain, middleware: coalesce() });
    const [one, many] = await Promise.all([
      embed({ model, value: texts[0] }),
      embedMany({ model, values: texts.slice(1, 40) }),
    ]);
    assertOwn(one.embedding, texts[0]);
    for (const [i, vector] of many.embeddings.entries()) assertOwn(vector, texts[i + 1]);
    assert.equal(receiver.requests.length, 1);
    const counted = receiver.requests[0].inputs.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
    assert.equal(one.usage.tokens + many.usage.tokens, counted);
  });

  test(`${name}: calls with other headers never share a request; an abort ends its own call`, async (t) => {
    const receiver = await api(t, { latencyMs: 50 });
    const plain = create({ name: "local", baseURL: receiver.baseURL, apiKey }).embeddingModel("tiny");
    const model = wrapEmbeddingModel({ model: plain, middleware: coalesce() });
    const controller = new AbortController();
    const aborted = embed({ model, value: "x", abortSignal: controller.signal });
    const calls = texts.slice(0, 40).map((value, i) => embed({ model, value, headers: { "x-tenant": `t${i % 2}` } }));
    controller.abort(new Error("gone"));
    await assert.rejects(aborted);
    await Promise.all(calls);
    const shared = receiver.requests.filter(({ headers }) => headers["x-tenant"] !== undefined);
    for (const { headers, inputs } of shared) {
      const tenants = new Set(inputs.map((text) => `t${texts.indexOf(text) % 2}`));
      assert.deepEqual([...tenants], [headers["x-tenant"]]);
    }
  });
}

test("LangChain made with a fetch: the tokens that the API counted stand in the statistics", async (t) => {
  const receiver = await api(t, {});
  const embeddings = new CoalescedEmbeddings(
    (fetch) => new OpenAIEmbeddings({ model: "tiny", apiKey, configuration: { baseURL: receiver.baseURL, fetch } }),
  );
  await embeddings.embedDocuments(texts);
  const counted = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  assert.equal(embeddings.batcher.stats().rateLimit.weight.used, counted);
});
