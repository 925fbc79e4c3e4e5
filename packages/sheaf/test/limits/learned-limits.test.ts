import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "../../dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../../dist/adapters/langchain.js";
import { openaiEmbeddings, type OpenAIEmbeddings } from "../../dist/adapters/openai/index.js";
import { createRateLimit } from "../../dist/index.js";
import { spanMsOf, toldLimits } from "../../dist/limits/told-limits.js";
import {
  fakeEmbeddingsApi,
  type FakeEmbeddingsApi,
  type FakeEmbeddingsApiOptions,
} from "../../../../test/fakes/limited-embeddings-api.mjs";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";
import { watch } from "../support/rig.js";
import { inProof } from "../support/seeds.js";
import { at, busy, embeddingsOf } from "./rig.ts";

const minuteMs = 60_000;
const limit = { tokensPerMinute: 300_000, requestsPerMinute: 3000 };

function rig(apiOptions: FakeEmbeddingsApiOptions = {}, options: Record<string, unknown> = {}) {
  const clock = virtualClock();
  const api = fakeEmbeddingsApi({ ...limit, clock, ...apiOptions });
  const make = (more: Record<string, unknown> = {}): OpenAIEmbeddings =>
    embeddingsOf(api, { clock, ...options, ...more });
  return { clock, api, make };
}

/** Callers who call again and again, over so many minutes; what the API counted after the first. */
async function drive(
  clock: VirtualClock,
  api: FakeEmbeddingsApi,
  batchers: ((text: string) => Promise<unknown>)[],
  minutes = inProof(4, 3),
) {
  const failures = busy(clock, batchers, minutes * minuteMs, 1000);
  await at(clock, minuteMs);
  const first = api.counts();
  await at(clock, minutes * minuteMs);
  const last = api.counts();
  return {
    failures,
    used: (last.tokens - first.tokens) / ((minutes - 1) * limit.tokensPerMinute),
    refusedPerMinute: (last.refused - first.refused) / (minutes - 1),
    wrong: last.wrong,
  };
}

for (const shape of inProof<("minute" | "10s")[]>(["minute", "10s"], ["minute"])) {
  for (const [name, api, rateLimit, least, most] of [
    ["right numbers", {}, { runs: 3000, weight: 300_000, perMs: minuteMs }, 0.97, 3],
    ["no numbers", {}, undefined, 0.95, 2],
    ["no numbers and Azure's headers", { style: "azure" }, undefined, 0.95, 2],
    ["no numbers and no headers", { headers: false }, undefined, 0.85, 20],
    ["no numbers and Retry-After alone", { style: "voyage" }, undefined, 0.85, 20],
  ] as const)
    test(`${name}, a bucket of ${shape}: at least ${least} of the limit is used, and no call fails`, async () => {
      const { clock, api: fake, make } = rig({ shape, ...api });
      const { used, refusedPerMinute, failures } = await drive(clock, fake, [make({ rateLimit })]);
      assert.deepEqual(failures, []);
      assert.ok(used >= least && used <= 1.03, `used ${used}`);
      assert.ok(refusedPerMinute <= most, `${refusedPerMinute} refusals a minute`);
    });

  test(`tightened tenfold and widened again, a bucket of ${shape}: no call fails, and the limit is used again`, async () => {
    const { clock, api, make } = rig({ shape });
    clock.at(70_000, () => api.setLimits({ tokensPerMinute: 30_000, requestsPerMinute: 300 }));
    clock.at(150_000, () => api.setLimits(limit));
    let before = 0;
    clock.at(240_000, () => (before = api.counts().tokens));
    const { failures } = await drive(clock, api, [make()], 6);
    assert.deepEqual(failures, []);
    const used = (api.counts().tokens - before) / (2 * limit.tokensPerMinute);
    assert.ok(used >= 0.9, `${used} of the last two minutes`);
  });

  test(`two batchers that share a limit use it up by turns, and one alone does too: a bucket of ${shape}`, async () => {
    for (const isIdle of [false, true]) {
      const { clock, api, make } = rig({ shape });
      const rateLimit = createRateLimit({ limits: { runs: 3000, weight: 300_000, perMs: minuteMs } });
      const both = [make({ rateLimit }), make({ rateLimit })];
      const { used, refusedPerMinute, failures } = await drive(clock, api, isIdle ? [both[0]!] : both);
      assert.deepEqual(failures, []);
      assert.ok(used >= 0.95 && used <= 1.03, `used ${used}`);
      assert.ok(refusedPerMinute <= 3, `${refusedPerMinute} refusals a minute`);
      const [a, b] = both.map((embed) => embed.usage().totalTokens);
      if (!isIdle) assert.ok(Math.abs(a! / b! - 1) < 0.1, `${a} and ${b}`);
    }
  });
}

test("an API that takes 96 inputs refuses one request, and then none in 102", async () => {
  const { clock, api, make } = rig({ maxInputs: 96 }, { concurrency: 1 });
  const embed = make();
  const texts = Array.from({ length: 9600 }, (_, i) => `text ${i}`);
  assert.equal((await embed.many(texts)).length, 9600);
  assert.deepEqual([api.counts().wrong, api.counts().accepted], [1, 102]);
  assert.equal(embed.stats().items.error, 0);
  assert.ok(clock.now() > 0);
});

test("a request with more tokens than the API takes goes again in smaller ones", async () => {
  const { api, make } = rig({ maxRequestTokens: 500, countTokens: (text) => text.length }, { concurrency: 1 });
  const embed = make();
  const texts = Array.from({ length: 300 }, (_, i) => `${i} ${"x".repeat(40)}`);
  assert.equal((await embed.many(texts)).length, 300);
  assert.ok(api.counts().wrong <= 3, `${api.counts().wrong}`);
});

test("a used-up quota and a limit per day are not waited for", async () => {
  const { clock, api, make } = rig({ latencyMs: 0 });
  api.setQuotaUsedUp(true);
  const call = watch(make()("a"));
  await clock.sleep(100);
  assert.equal((call.reason as { code?: string }).code, "insufficient_quota");
  const perDay = Object.assign(new Error("Rate limit reached on requests per day (RPD): Limit 200"), { status: 429 });
  const client = { embeddings: { create: () => Promise.reject(perDay) } };
  const daily = watch(openaiEmbeddings(client, { model: "m", clock })("a"));
  await clock.sleep(100);
  assert.equal(daily.reason, perDay);
});

test("after maxPauseMs of pauses a call gets the API's error, by default after five minutes", async () => {
  for (const [options, untilMs] of [
    [{}, 300_000],
    [{ maxPauseMs: 10_000 }, 10_000],
  ] as const) {
    const clock = virtualClock();
    const refused = Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "1" } });
    const client = { embeddings: { create: () => Promise.reject(refused) } };
    const calledAtMs = clock.now();
    await assert.rejects(openaiEmbeddings(client, { model: "m", clock, ...options })("a"), /slow down/);
    const waitedMs = clock.now() - calledAtMs;
    assert.ok(waitedMs <= untilMs && waitedMs > 0.3 * untilMs, `${waitedMs}`);
  }
});

test("stats show the limit that was learned, what was used, and what refusals cost", async () => {
  const { clock, api, make } = rig({ tokensPerMinute: 6000, latencyMs: 1, countTokens: (text) => text.length });
  const embed = make({ maxBatchSize: 1, concurrency: 1 });
  assert.equal(embed.stats().rateLimit!.weight.perMinute, null);
  await embed("x".repeat(3000));
  const { rateLimit } = embed.stats();
  assert.equal(rateLimit!.weight.perMinute, 6000);
  assert.equal(rateLimit!.weight.used, 3000, "as the API counted it");
  assert.equal(rateLimit!.weight.left, 3000);
  assert.equal(rateLimit!.runs.used, 1);
  api.setLimits({ tokensPerMinute: 600 });
  const init = { method: "POST", body: JSON.stringify({ model: "m", input: "z".repeat(500) }) };
  await api.fetch("http://api.invalid/embeddings", init); // by someone else with the same key
  await embed("y".repeat(500));
  assert.ok(embed.stats().rateLimit!.refused >= 1);
  assert.ok(embed.stats().rateLimit!.pausedMs > 0);
  assert.ok(clock.now() > 1000);
});

test("estimates are scaled by usage: a batch of base64 is no larger than the API takes", async () => {
  const { api, make } = rig({ countTokens: (text) => text.length }, { concurrency: 1, maxBatchWeight: 4000 });
  const embed = make();
  for (let i = 0; i < 40; i++) await embed.many(Array.from({ length: 20 }, (_, j) => `${"Ab9".repeat(30)}${i}x${j}`));
  const before = api.counts();
  await embed.many(Array.from({ length: 400 }, (_, j) => `${"Ab9".repeat(30)}last${j}`));
  const { requests, tokens } = api.counts();
  const perRequest = (tokens - before.tokens) / (requests - before.requests);
  assert.ok(perRequest > 3000 && perRequest <= 4100, `${perRequest}`);
});

test("the AI SDK's model tells headers and usage; a LangChain instance is waited for too", async () => {
  const { clock, api } = rig({ tokensPerMinute: 6000, countTokens: () => 1000, latencyMs: 1 });
  const ask = async (values: string[]): Promise<any> => {
    const init = { method: "POST", body: JSON.stringify({ model: "m", input: values }) };
    const response = await api.fetch("http://api.invalid/embeddings", init);
    const body: any = await response.json();
    if (response.ok) return { body, headers: Object.fromEntries(response.headers) };
    throw Object.assign(new Error(body.error.message), { statusCode: response.status, responseHeaders: Object.fromEntries(response.headers) }); // prettier-ignore
  };
  const model = {
    modelId: "m",
    maxEmbeddingsPerCall: 4,
    doEmbed: async ({ values }: { values: string[] }) => {
      const { body, headers } = await ask(values);
      const embeddings = body.data.map(({ embedding }: { embedding: number[] }) => embedding);
      return { embeddings, usage: { tokens: body.usage.total_tokens }, response: { headers }, warnings: [] };
    },
  };
  let stats: any;
  const { wrapEmbed } = coalesce({ clock, onBatcher: (batcher) => void (stats = () => batcher.stats().rateLimit) });
  const calls = Array.from({ length: 10 }, (_, i) => wrapEmbed({ params: { values: [`text ${i}`] }, model: model as never })); // prettier-ignore
  assert.equal((await Promise.all(calls)).length, 10);
  assert.equal(stats().weight.perMinute, 6000);
  const plain = {
    embedDocuments: async (texts: string[]) => (await ask(texts)).body.data.map(({ embedding }: any) => embedding),
    embedQuery: async () => [1],
  };
  const wrapped = new CoalescedEmbeddings(plain, { clock, maxBatchSize: 4 });
  assert.equal((await wrapped.embedDocuments(Array.from({ length: 10 }, (_, i) => `other ${i}`))).length, 10);
});

test("a LangChain instance that is made with a fetch tells headers and usage of each run", async (t) => {
  const { clock, api } = rig({ tokensPerMinute: 30_000, countTokens: (text) => Math.ceil(text.length / 2) });
  t.mock.method(globalThis, "fetch", api.fetch);
  /** As LangChain's: it takes a fetch, and shows nothing of a reply but the vectors; an error has its status alone. */
  const plain = (fetch: typeof globalThis.fetch) => ({
    embedDocuments: async (texts: string[]): Promise<number[][]> => {
      const body = JSON.stringify({ model: "m", input: texts });
      const response = await fetch("http://api.invalid/v1/embeddings", { method: "POST", body });
      const json: any = await response.json();
      if (!response.ok) throw Object.assign(new Error(json.error.message), { status: response.status });
      return json.data.map(({ embedding }: any) => embedding);
    },
    embedQuery: async () => [1],
  });
  let made = 0;
  const embeddings = new CoalescedEmbeddings((fetch) => (made++, plain(fetch)), { clock, concurrency: 3, maxBatchSize: 10 }); // prettier-ignore
  const texts = Array.from({ length: 400 }, (_, i) => `${i} ${"x".repeat(300)}`);
  const all = watch(embeddings.embedDocuments(texts));
  await at(clock, 5 * minuteMs);
  assert.equal((all.value as number[][] | undefined)?.length, 400);
  const { weight } = embeddings.batcher.stats().rateLimit!;
  assert.equal(weight.perMinute, 30_000, "as the headers say");
  assert.equal(weight.used, api.counts().tokens, "as usage says");
  assert.ok(api.counts().refused <= 6, `${api.counts().refused}: twice the three in flight`);
  assert.ok(made <= 3, `${made} instances`);
});

test("CoalescedEmbeddings refuses a function that makes no Embeddings at once", () => {
  assert.throws(
    () => new CoalescedEmbeddings(() => ({}) as never),
    /wraps an Embeddings instance with embedDocuments, got/,
  );
});

test("headers are read in every shape and unit, and -1 does not count", () => {
  const spans = { "6m0s": 360_000, "1s": 1000, "12ms": 12, "1h2m3.5s": 3_723_500, "7": 7000, soon: undefined };
  for (const [text, ms] of Object.entries(spans)) assert.equal(spanMsOf(text), ms, text);
  const sent = {
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "6m0s",
  };
  const weight = { limit: 150_000, remaining: 149_984, resetMs: 360_000 };
  const nothing = { limit: undefined, remaining: undefined, resetMs: undefined };
  assert.deepEqual(toldLimits(sent), { runs: nothing, weight });
  assert.deepEqual(toldLimits(new Headers(sent)), { runs: nothing, weight });
  assert.equal(toldLimits({ "x-ratelimit-limit-tokens": "-1", "x-ratelimit-remaining-tokens": "-1" }), undefined);
  assert.equal(toldLimits({}), undefined);
  const remaining = { "x-ratelimit-remaining-requests": "19", "x-ratelimit-remaining-tokens": "19913" };
  assert.deepEqual(
    toldLimits(remaining),
    { runs: nothing, weight: { ...nothing, remaining: 19_913 } },
    "as some of Azure's tell it",
  );
});

test("wrong options of createRateLimit are refused, and so is a limit of another kind in an adapter", () => {
  assert.throws(
    () => createRateLimit({ limits: { runs: 0, perMs: 1 } }),
    /limits\.runs must be an integer >= 1, got 0/,
  );
  assert.throws(() => createRateLimit({ limit: 1 } as never), /unknown option limit; did you mean limits\?/);
  const { make } = rig();
  assert.throws(() => make({ rateLimit: { join: () => undefined } }), /rateLimit must be numbers, or a limit of createRateLimit\(\)/); // prettier-ignore
});
