import assert from "node:assert/strict";
import { test } from "node:test";
import { openaiEmbeddings, openaiFetch } from "../../dist/adapters/openai/index.js";
import {
  fakeEmbeddingsApi,
  type FakeEmbeddingsApi,
  type FakeEmbeddingsApiOptions,
} from "../../../../test/fakes/limited-embeddings-api.mjs";
import { spanOf } from "../../dist/limits/told-limits.js";
import { virtualClock } from "../../dist/testing/index.js";

const url = "http://api.invalid/v1/embeddings";
const post = (api: FakeEmbeddingsApi, input: unknown, init: RequestInit = {}): Promise<Response> =>
  api.fetch(url, { method: "POST", body: JSON.stringify({ model: "m", input }), ...init });
const rig = (options: FakeEmbeddingsApiOptions = {}) => {
  const clock = virtualClock();
  return { clock, api: fakeEmbeddingsApi({ clock, countTokens: (text) => text.length, ...options }) };
};
const tokens = (count: number): string => "x".repeat(count);

test("a reply has a vector for each input, usage, and the six headers that OpenAI documents", async () => {
  const { api, clock } = rig({ tokensPerMinute: 150_000, requestsPerMinute: 60 });
  const response = await post(api, [tokens(10), tokens(6)]);
  const body = (await response.json()) as { data: { index: number; embedding: number[] }[]; usage: object };
  assert.deepEqual(body.usage, { prompt_tokens: 16, total_tokens: 16 });
  assert.deepEqual(
    body.data.map(({ index, embedding }) => [index, embedding.length]),
    [[0, 8], [1, 8]], // prettier-ignore
  );
  assert.equal(clock.now(), 100);
  const header = (name: string): string | null => response.headers.get(`x-ratelimit-${name}`);
  assert.deepEqual(
    ["limit-requests", "remaining-requests", "reset-requests", "limit-tokens", "remaining-tokens", "reset-tokens"].map(
      header,
    ),
    ["60", "59", "1s", "150000", "149984", "7ms"],
  );
});

test("spans are written as OpenAI's documents have them", () => {
  assert.deepEqual([12, 1000, 1500, 60_000, 360_000, 3_660_500].map(spanOf), ["12ms", "1s", "1.5s", "1m0s", "6m0s", "1h1m0.5s"]); // prettier-ignore
});

for (const [shape, holds, waitMs] of [
  ["minute", 6000, 10_000],
  ["10s", 1000, 10_000],
] as const)
  test(`a bucket of shape ${shape} holds ${holds} of 6000 tokens a minute, and 429 says when the request fits`, async () => {
    const { api, clock } = rig({ tokensPerMinute: 6000, maxInputs: 10, shape });
    assert.equal((await post(api, tokens(holds))).status, 200);
    const startedAtMs = clock.now();
    const refused = await post(api, tokens(1000));
    assert.equal(refused.status, 429);
    assert.equal(clock.now(), startedAtMs + 20, "a refusal takes a fifth");
    const afterMs = Number(refused.headers.get("retry-after-ms"));
    assert.equal(afterMs, waitMs - 100, "of which 100 ms had passed");
    assert.equal(refused.headers.get("retry-after"), String(Math.ceil(afterMs / 1000)));
    const { error } = (await refused.json()) as { error: { code: string; type: string; message: string } };
    assert.equal(error.code, "rate_limit_exceeded");
    assert.equal(error.type, "tokens");
    assert.match(error.message, /tokens per min \(TPM\): Limit 6000, Used \d+, Requested 1000/);
    await clock.sleep(afterMs - 20);
    assert.equal((await post(api, tokens(1000))).status, 200);
    assert.equal((await post(api, tokens(1))).status, 200, "what flowed in during the request");
  });

test("fixed minutes begin again at each full minute of the clock", async () => {
  const { api, clock } = rig({ requestsPerMinute: 2, shape: "fixed-minutes" });
  const statuses = async (): Promise<number[]> => [(await post(api, "a")).status, (await post(api, "a")).status, (await post(api, "a")).status]; // prettier-ignore
  assert.deepEqual(await statuses(), [200, 200, 429]);
  await clock.sleep(60_000 - clock.now());
  assert.deepEqual(await statuses(), [200, 200, 429]);
});

test("limits can be tightened and widened while it runs, and a quota can be used up", async () => {
  const { api } = rig({ tokensPerMinute: 1000 });
  api.setLimits({ tokensPerMinute: 100 });
  assert.equal((await post(api, tokens(101))).status, 429);
  api.setLimits({ tokensPerMinute: 1000 });
  assert.equal((await post(api, tokens(90))).status, 200);
  api.setQuotaUsedUp(true);
  const refused = await post(api, "a");
  assert.equal(((await refused.json()) as { error: { code: string } }).error.code, "insufficient_quota");
  api.setQuotaUsedUp(false);
  assert.equal((await post(api, "a")).status, 200);
  assert.deepEqual(api.counts(), { requests: 4, accepted: 2, refused: 2, wrong: 0, tokens: 91, inputs: 2 });
});

test("Azure's resets are whole seconds; Cohere and Voyage send no header about limits; without headers there is none", async () => {
  const azure = await post(rig({ style: "azure" }).api, tokens(1000));
  assert.equal(azure.headers.get("x-ratelimit-reset-tokens"), "1");
  for (const style of ["cohere", "voyage"] as const) {
    const { api } = rig({ style, requestsPerMinute: 1 });
    const accepted = await post(api, "a");
    const refused = await post(api, "a");
    assert.equal(accepted.headers.get("x-ratelimit-limit-tokens"), null);
    assert.equal(refused.headers.get("retry-after"), "60");
    const body = (await refused.json()) as { message?: string; detail?: string };
    assert.match((style === "cohere" ? body.message : body.detail)!, /Rate limit reached/);
  }
  const { api } = rig({ headers: false, requestsPerMinute: 1 });
  await post(api, "a");
  const silent = await post(api, "a");
  assert.deepEqual([silent.status, silent.headers.get("retry-after")], [429, null]);
});

test("too many inputs or tokens in a request get a 400 that names the limit", async () => {
  const { api } = rig({ maxInputs: 2, maxRequestTokens: 10 });
  for (const [input, named] of [
    [["a", "b", "c"], /at most 2/],
    [[tokens(6), tokens(6)], /Requested 12 tokens, max 10 tokens per request/],
  ] as const) {
    const response = await post(api, input);
    assert.equal(response.status, 400);
    assert.match(await response.text(), named);
  }
});

test("an aborted request ends at once with the signal's reason, and another route is a 404", async () => {
  const { api } = rig();
  const controller = new AbortController();
  const pending = post(api, "a", { signal: controller.signal });
  controller.abort(new Error("gone"));
  await assert.rejects(pending, /gone/);
  assert.equal((await api.fetch("http://api.invalid/v1/models")).status, 404);
});

test("a client of openai's shape works with it, in base64 too", async () => {
  const { api, clock } = rig();
  const embed = openaiEmbeddings(openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch }), { model: "m", clock }); // prettier-ignore
  const floats = openaiEmbeddings(openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch }), { model: "m", encoding: "float", clock }); // prettier-ignore
  assert.deepEqual(await embed("hello"), await floats("hello"));
  assert.notDeepEqual(await embed("hello"), await embed("world"));
});
