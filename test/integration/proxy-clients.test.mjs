// Real clients through `sheaf proxy`, with only their address changed, against an API on this machine: how many requests
// reach it, and what happens to every caller when it fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { embed } from "ai";
import OpenAI from "openai";
import { embeddingApi, vectorOf } from "../fakes/embedding-api.mjs";
import { assertResult } from "../support/result.mjs";
import { proxy } from "./lib/serving.mjs";

const texts = Array.from({ length: 500 }, (_, i) => `Text number ${i} of this test`);
const apiKey = "sk-test";

/** The most requests that the proxy has in flight before it learns a better number. */
const firstConcurrency = 8;

/**
 * The API, and the proxy before it in a process of its own. `all(calls)` makes the calls at once and resolves with how each ended.
 * The API answers only while the proxy has every call that has not ended, so that the number of requests depends on the proxy, not
 * on how fast the calls arrive.
 */
async function proxiedApi(t, { fault = () => undefined, ...options }, ...flags) {
  let unsettled = 0;
  let arrived;
  let giveUp;
  const stuck = new Promise((_, reject) => (giveUp = reject));
  const api = await embeddingApi({
    ...options,
    fault: async (request, number) => {
      arrived ??= allArrived().finally(() => (arrived = undefined));
      await arrived.catch(giveUp);
      return fault(request, number);
    },
  });
  t.after(() => api.close());
  const patience = ["--request-timeout-ms", "600000", "--run-timeout-ms", "600000"];
  // All calls are one tenant's: only of tenants does a metric count the calls that wait or run.
  const url = await proxy(t, api.baseURL, "--tenant-by", "header", ...patience, ...flags);
  return { api, baseURL: `${url}/v1`, all };

  async function allArrived() {
    let inProxy;
    for (const deadlineMs = performance.now() + 240_000; performance.now() < deadlineMs;) {
      await sleep(25);
      const metrics = await (await fetch(`${url}/metrics`)).text();
      inProxy = Number(/^sheaf_tenant_in_flight_items\{.*\} (\d+)$/m.exec(metrics)?.[1]);
      if (inProxy === unsettled) return;
    }
    throw new Error(`${unsettled} calls have not ended, and the proxy has ${inProxy} of them`);
  }

  function all(calls) {
    unsettled = calls.length;
    return Promise.race([stuck, Promise.allSettled(calls.map((call) => call().finally(() => unsettled--)))]);
  }
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
  assertResult(vectorOf(text).every((number, i) => Math.abs(vector[i] - number) < 1e-6), true, `${text}: ${vector}`); // prettier-ignore

/** Every call is answered with its own vector. */
async function assertAnswered({ all }, embedOne, texts) {
  const outcomes = await all(texts.map((text) => () => embedOne(text)));
  for (const [i, { value, reason }] of outcomes.entries()) {
    assert.equal(reason, undefined);
    assertOwn(value, texts[i]);
  }
}

for (const [name, connect] of Object.entries(clients)) {
  test(`${name}: 500 calls at once reach the API as a few requests; each has its own vector`, async (t) => {
    const proxied = await proxiedApi(t, {});
    const { requests } = proxied.api;
    await assertAnswered(proxied, connect(proxied.baseURL), texts);
    t.diagnostic(`${requests.length} requests of ${requests.map(({ inputs }) => inputs.length).join(", ")}`);
    // The first may go with a single call each; of the later ones most are full.
    assert.ok(requests.length <= 2 * firstConcurrency + 5, `${requests.length} requests`);
    assert.ok(requests.every(({ headers }) => headers.authorization === `Bearer ${apiKey}`));
  });
}

test("openai: an API that answers 429 to all but a few requests: everybody is answered, in a bounded number of requests", async (t) => {
  const proxied = await proxiedApi(t, { window: { requests: 2, ms: 400 } });
  const { requests } = proxied.api;
  await assertAnswered(proxied, clients.openai(proxied.baseURL), texts);
  const refused = requests.filter(({ status }) => status === 429).length;
  t.diagnostic(`${requests.length} requests, ${refused} refused`);
  // Before each pause the API answers at least one of the requests in flight.
  assert.ok(requests.length <= firstConcurrency * (firstConcurrency + 5), `${requests.length} requests for 500 calls`);
});

test("openai: an API that fails for good is not asked more often than its clients retry, and every caller gets the error", async (t) => {
  const fault = () => ({ status: 500, headers: { "retry-after-ms": "1" } });
  const { api, baseURL, all } = await proxiedApi(t, { fault });
  const embedOne = clients.openai(baseURL);
  const outcomes = await all(texts.slice(0, 200).map((text) => () => embedOne(text)));
  assert.ok(outcomes.every(({ reason }) => reason?.status === 500));
  t.diagnostic(`${api.requests.length} requests for 200 calls of three attempts each`);
  // 600 by themselves. A batch that fails takes one more request, with one of its texts.
  assert.ok(api.requests.length <= 80, `${api.requests.length} requests`);
});

test("openai: a connection that is reset mid-batch is the clients' to repeat, and their repetitions share requests", async (t) => {
  const proxied = await proxiedApi(t, { fault: (_, number) => (number === 1 ? "reset" : undefined) });
  await assertAnswered(proxied, clients.openai(proxied.baseURL), texts.slice(0, 100));
  const { length } = proxied.api.requests;
  t.diagnostic(`${length} requests`);
  // Calls that arrive while the first requests are in flight share one more, and so do those that the clients repeat.
  assert.ok(length <= 2 * (firstConcurrency + 1), `${length} requests`);
});
