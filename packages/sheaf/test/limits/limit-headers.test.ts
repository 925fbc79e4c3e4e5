import assert from "node:assert/strict";
import { test } from "node:test";
import { openaiEmbeddings, openaiFetch, rateLimitHeaders } from "../../dist/adapters/openai/index.js";
import { toldLimits } from "../../dist/limits/told-limits.js";
import { fakeEmbeddingsApi } from "../../../../test/fakes/limited-embeddings-api.mjs";
import { virtualClock } from "../../dist/testing/index.js";

const unknown = { perMinute: null, left: null, holds: null, used: 7 };

test("the room that is left is told in OpenAI's six headers, and nothing of a limit that is not known", () => {
  const runs = { perMinute: 3000, left: 2499.9, holds: 3000, used: 1 };
  assert.deepEqual(rateLimitHeaders({ runs, weight: unknown }), {
    "x-ratelimit-limit-requests": "3000",
    "x-ratelimit-remaining-requests": "2499",
    "x-ratelimit-reset-requests": "10.002s",
  });
  assert.deepEqual(rateLimitHeaders({ runs: unknown, weight: unknown }), {});
});

test("a debt is told as 0, and a bucket that holds less than a minute's limit is whole again sooner", () => {
  const weight = { perMinute: 60_000, left: -500, holds: 10_000, used: 1 };
  const headers = rateLimitHeaders({ runs: unknown, weight });
  assert.equal(headers["x-ratelimit-remaining-tokens"], "0");
  assert.equal(headers["x-ratelimit-reset-tokens"], "10.5s");
});

test("a batcher behind a gateway learns from them the limit that the gateway has learned from its API", async () => {
  const clock = virtualClock();
  const api = fakeEmbeddingsApi({ tokensPerMinute: 6000, requestsPerMinute: 60, clock });
  const embed = openaiEmbeddings(openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch }), {
    model: "m",
    clock,
  });
  await embed("x".repeat(4000));
  const told = toldLimits(rateLimitHeaders(embed.stats().rateLimit!))!;
  assert.deepEqual([told.weight.limit, told.weight.remaining], [6000, 5000]);
  assert.deepEqual([told.runs.limit, told.runs.remaining], [60, 59]);
});
