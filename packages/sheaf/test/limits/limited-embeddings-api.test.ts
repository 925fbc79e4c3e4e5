import assert from "node:assert/strict";
import { test } from "node:test";
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
