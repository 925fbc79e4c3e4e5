import assert from "node:assert/strict";
import { test } from "node:test";
import { limitedLlmApi, type LimitedLlmApiOptions, type LlmBody } from "../../../../test/fakes/limited-llm-api.mjs";
import { pacedCalls, pacedModel } from "../../dist/adapters/llm/index.js";
import { createRateLimit, type BatcherError } from "../../dist/index.js";
import { toldLimits } from "../../dist/limits/told-limits.js";
import { virtualClock } from "../../dist/testing/index.js";
import { apiError } from "./scripted-client.js";

const minuteMs = 60_000;
/** 100 tokens by the fake's count: 400 characters of JSON. */
const body = (answer: number, more: Partial<LlmBody> = {}): LlmBody => ({
  messages: [{ role: "user", content: "some words ".repeat(33) + "x" }],
  answer,
  ...more,
});

function rig(api: LimitedLlmApiOptions, options: Record<string, unknown> = {}) {
  const clock = virtualClock();
  const fake = limitedLlmApi({ clock, ...api });
  const calls = pacedCalls((request: LlmBody, { signal }) => fake.call(request, signal), { clock, ...options });
  return { clock, fake, calls };
}

async function read(stream: AsyncIterable<unknown>, most = Infinity): Promise<number> {
  let chunks = 0;
  for await (const _ of stream) if (++chunks >= most) break;
  return chunks;
}

test("Anthropic's three limits are told apart, with resets in RFC 3339 from the reply's date", () => {
  const headers: Record<string, string> = {
    date: "Sat, 28 Nov 2026 12:00:00 GMT",
    "anthropic-ratelimit-tokens-remaining": "1",
  };
  for (const [kind, limit, remaining] of [
    ["requests", 50, 49],
    ["input-tokens", 30_000, 100],
    ["output-tokens", 8000, 7000],
  ] as const) {
    headers[`anthropic-ratelimit-${kind}-limit`] = String(limit);
    headers[`anthropic-ratelimit-${kind}-remaining`] = String(remaining);
    headers[`anthropic-ratelimit-${kind}-reset`] = "2026-11-28T12:00:30Z";
  }
  const told = toldLimits(headers)!;
  assert.deepEqual(told.runs, { limit: 50, remaining: 49, resetMs: 30_000 });
  assert.deepEqual(told.input, { limit: 30_000, remaining: 100, resetMs: 30_000 });
  assert.deepEqual(told.output, { limit: 8000, remaining: 7000, resetMs: 30_000 });
  assert.equal(told.weight.remaining, undefined, "the tightest of the others, told again");
});

for (const [name, api, most] of [
  ["told", { tokens: 60_000 }, 0],
  ["told, with max_tokens", { tokens: 60_000 }, 0],
  ["told, input and output apart", { style: "anthropic", requests: 1000, input: 60_000, output: 20_000 }, 0],
  ["learned from refusals", { tokens: 60_000, tells: false }, 0.02],
] as const)
  test(`${name}: 0.95 of the limit is used and at most ${most} of the calls are refused, streams among them`, async () => {
    const { clock, fake, calls } = rig(api);
    let number = 0;
    const caller = async (): Promise<void> => {
      while (clock.now() < 6 * minuteMs) {
        const stream = number % 2 === 0;
        const answer = 50 + ((number++ * 97) % 300);
        const more = name.includes("max_tokens") ? { max_tokens: 400 } : {};
        const { data } = await calls(body(answer, { stream, ...more }));
        if (stream) await read(data);
      }
    };
    for (let i = 0; i < 40; i++) void caller();
    await clock.sleep(2 * minuteMs);
    const first = fake.counts();
    await clock.sleep(4 * minuteMs);
    const last = fake.counts();
    const of = (count: "requests" | "refused" | "input" | "output"): number => last[count] - first[count];
    const used = "output" in api ? of("output") / (4 * api.output) : (of("input") + of("output")) / (4 * api.tokens);
    assert.ok(used >= 0.95 && used < 1.05, `used ${used}`);
    assert.ok(of("refused") <= most * of("requests"), `${of("refused")} of ${of("requests")} refused`);
  });

test("a stream counts when it ends: by its usage, or by what had come of it when it was left", async () => {
  const { clock, calls } = rig({ tokens: 60_000, tells: false });
  const used = (): number => Math.round(calls.batcher.stats().rateLimit!.weight.used);
  const whole = await calls(body(200, { stream: true, max_tokens: 1000 }));
  const estimate = used();
  assert.ok(estimate > 1000);
  assert.equal(calls.batcher.pending.inFlight, 1, "it runs to its end");
  await read(whole.data);
  await clock.sleep(0);
  assert.equal(used(), 299);
  assert.equal(calls.batcher.pending.inFlight, 0);
  const left = await calls(body(800, { stream: true, max_tokens: 1000 }));
  await read(left.data, 2);
  await clock.sleep(0);
  const afterLeft = used() - 299;
  assert.ok(afterLeft >= 250 && afterLeft < 400, `${afterLeft} of a quarter of 800, and the input`);
  assert.equal(calls.batcher.pending.inFlight, 0);
});

test("a client's stream stays its own object, and a call's signal aborts it", async () => {
  class Stream {
    controller = new AbortController();
    async *[Symbol.asyncIterator](): AsyncGenerator<object> {
      yield { usage: { prompt_tokens: 3, completion_tokens: 4 } };
    }
  }
  const signals: AbortSignal[] = [];
  const stream = new Stream();
  const calls = pacedCalls((_: string, { signal }) => {
    signals.push(signal);
    return stream;
  });
  const gone = new AbortController();
  const got = await calls("hello", { signal: gone.signal });
  assert.equal(got, stream);
  gone.abort();
  assert.ok(signals[0]!.aborted);
  assert.equal(await read(got), 1);
  await calls.batcher.drain();
  assert.equal(calls.batcher.stats().rateLimit!.weight.used, 7);
});

test("a call that cannot be sent before its deadline is refused at once, and one that waits at its deadline", async () => {
  const rateLimit = { weight: 600, perMs: minuteMs };
  const { clock, calls } = rig({}, { rateLimit, timeoutMs: 10_000, estimate: () => ({ input: 100, output: 0 }) });
  await calls(body(0));
  const late = [calls(body(0), { timeoutMs: 5000 }), calls(body(0))].map((call) =>
    call.catch((error: BatcherError) => error),
  );
  await clock.sleep(0);
  const [refused, waited] = (await Promise.all(late)) as BatcherError[];
  assert.equal(refused!.code, "TIMEOUT");
  assert.ok((refused!.details["retryAfterMs"] as number) > 5000);
  assert.equal(waited instanceof Error, false, "it goes after ten seconds");
});

test("what the provider refuses goes again after its pause, unless its deadline comes first; a bad request is its caller's", async () => {
  const clock = virtualClock();
  const outcomes = [
    apiError(429, { headers: { "retry-after": "2" } }),
    "a",
    apiError(429, { headers: { "retry-after": "20" } }),
    apiError(400),
  ];
  const sentAtMs: number[] = [];
  const calls = pacedCalls(
    (_: string) => {
      sentAtMs.push(clock.now());
      const outcome = outcomes.shift();
      if (typeof outcome === "object") throw outcome;
      return outcome;
    },
    { clock },
  );
  assert.equal(await calls("x", { timeoutMs: 5000 }), "a");
  assert.deepEqual(sentAtMs, [0, 2000]);
  await assert.rejects(calls("x", { timeoutMs: 5000 }), { status: 429 });
  assert.equal(clock.now(), 2000, "at once");
  await clock.sleep(20_000);
  await assert.rejects(calls("x"), { status: 400 });
  assert.equal(calls.batcher.stats().rateLimit!.refused, 2);
});

test("tenants take turns, and live calls find room beside an endless bulk job", async () => {
  const { clock, fake, calls } = rig({ tokens: 60_000 });
  let isOver = false;
  const job = async (): Promise<void> => {
    while (!isOver) await calls(body(200), { priority: "bulk" });
  };
  for (let i = 0; i < 200; i++) void job();
  await clock.sleep(2 * minuteMs);
  const waits: number[] = [];
  for (let i = 0; i < 40; i++) {
    const fromMs = clock.now();
    const { data } = await calls(body(100));
    waits.push(clock.now() - fromMs - 1400);
    assert.ok(data.usage);
    await clock.sleep(1500);
  }
  isOver = true;
  assert.ok(Math.max(...waits) <= 1000, `${Math.max(...waits)}`);
  assert.ok(fake.counts().refused === 0);
});

test("two sharers of a limit keep it together, in all of its dimensions", async () => {
  const clock = virtualClock();
  const fake = limitedLlmApi({ clock, style: "anthropic", requests: 1000, input: 100_000, output: 12_000 });
  const rateLimit = createRateLimit({ clock });
  const make = () => pacedCalls((request: LlmBody, { signal }) => fake.call(request, signal), { clock, rateLimit });
  const both = [make(), make()];
  for (let i = 0; i < 40; i++)
    void (async () => {
      while (clock.now() < 5 * minuteMs) await both[i % 2]!(body(100));
    })();
  await clock.sleep(minuteMs);
  const first = fake.counts();
  await clock.sleep(4 * minuteMs);
  const { output, refused } = fake.counts();
  assert.equal(refused, first.refused);
  const used = (output - first.output) / (4 * 12_000);
  assert.ok(used > 0.95 && used < 1.03, `${used}`);
  const { output: figures } = rateLimit.stats();
  assert.equal(figures!.perMinute, 12_000);
});

test("the AI SDK's middleware paces generate and stream, and reads their usage and headers", async () => {
  const clock = virtualClock();
  let stats: () => any = () => undefined;
  const middleware = pacedModel({ clock, onBatcher: (batcher) => void (stats = () => batcher.stats()) });
  const model = { modelId: "m" };
  const params = { prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }], maxOutputTokens: 50 };
  const usage = { inputTokens: { total: 5 }, outputTokens: { total: 7 } };
  const headers = { "x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "900" };
  const generated = await middleware.wrapGenerate({ doGenerate: async () => ({ content: [], usage, response: { headers } }), params, model }); // prettier-ignore
  assert.equal(generated.usage, usage);
  assert.equal(stats().rateLimit.weight.used, 12);
  assert.equal(stats().rateLimit.weight.perMinute, 1000);
  const parts = [
    { type: "text-delta", delta: "hello" },
    { type: "finish", usage },
  ];
  const { stream } = await middleware.wrapStream({ doStream: async () => ({ stream: ReadableStream.from(parts) }), params, model }); // prettier-ignore
  assert.equal(stats().inFlight, 1);
  const seen: unknown[] = [];
  for await (const part of stream) seen.push(part);
  assert.deepEqual(seen, parts);
  await clock.sleep(0);
  assert.equal(stats().rateLimit.weight.used, 24);
  assert.equal(stats().inFlight, 0);
});
