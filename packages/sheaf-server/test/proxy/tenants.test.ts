import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyBatchers } from "../../dist/proxy/key-batchers.js";
import { defaultSettings } from "../../dist/settings/settings.js";
import fc from "fast-check";
import { embeddingApi, proxying, vectorOf } from "./proxying.js";

const headersOf = (call: Call): Record<string, string> => ({
  ...(call.organization === undefined ? {} : { "openai-organization": call.organization }),
  ...(call.apiKey === undefined ? {} : { "api-key": call.apiKey }),
  ...(call.unknownHeader === undefined ? {} : { "x-team": call.unknownHeader }),
});

/** Mostly the first value, so that many calls differ in one thing only. */
const mostly = <T>(first: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(first), weight: 8 }, { arbitrary: fc.constantFrom(...others), weight: 2 });
const call = fc.record({
  key: mostly("sk-a", "sk-b", "sk-A"),
  organization: mostly<string | undefined>(undefined, "o1", "o2"),
  apiKey: mostly<string | undefined>(undefined, "z1"),
  unknownHeader: mostly<string | undefined>(undefined, "t1"),
  query: mostly("", "?v=1"),
  model: mostly("m1", "m2"),
  dimensions: mostly<number | undefined>(undefined, 3, 4),
  format: mostly<string | undefined>(undefined, "base64"),
  user: mostly<string | undefined>(undefined, "u1", "u2"),
  nested: mostly<object | undefined>(undefined, { a: 1, b: 2 }, { b: 2, a: 1 }, { a: 2 }),
  inputs: fc.integer({ min: 1, max: 3 }),
});
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

test("calls that differ in a key, a header, the query, the model or a parameter never share a request; each gets its own vectors", async (t) => {
  const api = await embeddingApi(t, { latencyMs: 1 });
  const proxy = await proxying(t, api.baseURL, { maxWaitMs: 100 });
  let calls = 0;
  let shared = 0;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 15, maxLength: 40 }), async (drawn) => {
      api.requests.length = 0;
      const asked = new Map<string, Call>();
      const id = run++;
      await Promise.all(
        drawn.map(async (one, i) => {
          const input = Array.from({ length: one.inputs }, (_, k) => `${id}.${i}.${k}`);
          for (const text of input) asked.set(text, one);
          const response = await fetch(`${proxy.url}/v1/embeddings${one.query}`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${one.key}`, ...headersOf(one) },
            body: JSON.stringify({
              model: one.model, input, dimensions: one.dimensions, encoding_format: one.format, user: one.user,
              options: one.nested,
            }), // prettier-ignore
          });
          const { data } = (await response.json()) as any;
          const vectors = data.map(({ embedding }: any) => (one.format === "base64" ? floatsOf(embedding) : embedding));
          assert.deepEqual(
            vectors,
            input.map((text) => vectorOf(text, one.dimensions)),
          );
        }),
      );
      for (const { url, headers, body, inputs } of api.requests)
        for (const text of inputs) {
          const one = asked.get(text)!;
          const expected = [
            `Bearer ${one.key}`, one.organization, one.apiKey, one.unknownHeader, `/v1/embeddings${one.query}`,
            one.model, one.dimensions, one.format, one.user, one.nested,
          ]; // prettier-ignore
          assert.deepEqual(
            [
              headers["authorization"], headers["openai-organization"], headers["api-key"], headers["x-team"], url,
              body.model, body.dimensions, body.encoding_format, body.user, body.options,
            ], // prettier-ignore
            expected,
          );
        }
      shared += api.requests.filter(({ inputs }) => new Set(inputs.map(callOf)).size > 1).length;
      assert.equal(api.requests.flatMap(({ inputs }) => inputs).length, asked.size);
      calls += drawn.length;
    }),
    { numRuns: 25, seed: 9 },
  );
  assert.ok(calls > 250 && shared > 5, `${calls} calls, ${shared} requests of more than one`);
});

test("calls of one key that differ in nothing do share requests", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, { maxBatchSize: 10, maxWaitMs: 60_000 });
  await Promise.all(Array.from({ length: 60 }, (_, i) => proxy.embed(`t${i}`, { key: `sk-${i % 2}` })));
  assert.equal(api.requests.length, 6);
  assert.deepEqual(new Set(api.requests.map(({ headers }) => headers["authorization"])).size, 2);
});

test("a caller that names a new model in each request is told to come back in a second", (t) => {
  let nowMs = 5;
  t.mock.method(performance, "now", () => nowMs);
  const keyBatchers = new KeyBatchers(defaultSettings);
  t.after(() => keyBatchers.close(0));
  for (let i = 0; i < 100; i++) keyBatchers.of(["sk-1"], `m${i}`, undefined);
  assert.throws(() => keyBatchers.of(["sk-1"], "m100", undefined), /100 new models in a second; retry in a second/);
  keyBatchers.of(["sk-1"], "m0", undefined);
  keyBatchers.of(["sk-2"], "m0", undefined);
  nowMs += 1000;
  keyBatchers.of(["sk-1"], "m100", undefined);
});

const callOf = (text: string): string => text.slice(0, text.lastIndexOf("."));
const floatsOf = (base64: string): number[] => {
  const bytes = Buffer.from(base64, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
};
