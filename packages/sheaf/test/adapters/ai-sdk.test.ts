import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "../../dist/adapters/ai-sdk.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, statuses, watch } from "../support/rig.js";
import { apiError } from "./scripted-client.js";

/** A model whose calls the test reads; `outcome` decides what each gives. */
function rig(options: Record<string, unknown> = {}, model: Record<string, unknown> = {}) {
  const clock = manualClock();
  const calls: any[] = [];
  const whole = {
    modelId: "tiny",
    maxEmbeddingsPerCall: 2048,
    doEmbed: async (params: any) => {
      calls.push(params);
      await new Promise<void>((resolve) => void clock.after(10, resolve));
      return {
        embeddings: params.values.map((value: string) => [value.length]),
        usage: { tokens: params.values.join("").length },
        warnings: [{ type: "other", message: "w" }],
        response: { headers: { "x-request-id": "r" }, body: { secret: "of others" } },
      };
    },
    ...model,
  };
  const { wrapEmbed } = coalesce({ clock, ...options });
  const embed = (params: Record<string, unknown>) =>
    watch(wrapEmbed({ params: params as never, model: whole as never }));
  const values = (): unknown[] => calls.map((call) => call.values);
  return { clock, calls, values, embed };
}

test("calls made at the same time share one doEmbed; each gets its own vectors and its share of the tokens", async () => {
  const { clock, embed, values } = rig({ weigh: (text: string) => text.length });
  const a = embed({ values: ["a"] });
  const b = embed({ values: ["bb", "ccc"] });
  await clock.advanceAsync(100);
  assert.deepEqual(values(), [["a", "bb", "ccc"]]);
  assert.deepEqual(a.value?.embeddings, [[1]]);
  assert.deepEqual(a.value?.usage, { tokens: 1 });
  assert.deepEqual(b.value?.embeddings, [[2], [3]]);
  assert.deepEqual(b.value?.usage, { tokens: 5 });
});

test("a caller gets the reply's warnings and headers, but not the body that holds everybody's vectors", async () => {
  const { clock, embed } = rig();
  const call = embed({ values: ["a"] });
  await clock.advanceAsync(100);
  const { warnings, response } = call.value as any;
  assert.equal(warnings.length, 1);
  assert.deepEqual(response, { headers: { "x-request-id": "r" } });
});

test("never more than the model's maxEmbeddingsPerCall go together, were it a promise", async () => {
  const { clock, embed, values } = rig({}, { maxEmbeddingsPerCall: Promise.resolve(2) });
  embed({ values: ["a", "b", "c"] });
  await clock.advanceAsync(200);
  assert.deepEqual(values(), [["a", "b"], ["c"]]);
});

test("other headers, provider options or dimensions never share a call; the order of their properties does not matter", async () => {
  const { clock, calls, embed } = rig();
  const all = [
    embed({ values: ["a"], headers: { k: "1", l: "2" } }),
    embed({ values: ["b"], headers: { l: "2", k: "1" } }),
    embed({ values: ["c"], headers: { k: "2" } }),
    embed({ values: ["d"], providerOptions: { openai: { dimensions: 3 } } }),
    embed({ values: ["e"], dimensions: 3 }),
    embed({ values: ["f"] }),
  ];
  await clock.advanceAsync(500);
  assert.deepEqual(statuses(all), Array(6).fill("fulfilled"));
  assert.deepEqual(
    calls.map((call) => [call.values.join(), call.headers, call.providerOptions, call.dimensions]),
    [
      ["a,b", { k: "1", l: "2" }, undefined, undefined],
      ["c", { k: "2" }, undefined, undefined],
      ["d", undefined, { openai: { dimensions: 3 } }, undefined],
      ["e", undefined, undefined, 3],
      ["f", undefined, undefined, undefined],
    ],
  );
});

test("an abort withdraws its own call only; the model's signal aborts when everyone has gone", async () => {
  const { clock, calls, embed } = rig();
  const first = new AbortController();
  const second = new AbortController();
  const a = embed({ values: ["a"], abortSignal: first.signal });
  const b = embed({ values: ["b"], abortSignal: second.signal });
  await clock.advanceAsync(5);
  first.abort(new Error("bored"));
  await clock.settle();
  assert.equal((a.reason as Error).message, "bored");
  assert.equal(calls[0].abortSignal.aborted, false);
  second.abort(new Error("bored too"));
  await clock.settle();
  assert.equal(calls[0].abortSignal.aborted, true);
  assert.equal(b.status, "rejected");
});

test("the model's own error reaches its callers, who may try again: they share a call again", async () => {
  const error = apiError(503, { headers: { "retry-after": "3" } });
  let failures = 1;
  const doEmbed = async (params: any): Promise<object> => {
    if (failures-- > 0) throw error;
    return { embeddings: params.values.map(() => [1]), warnings: [] };
  };
  const { clock, embed } = rig({}, { doEmbed });
  const a = embed({ values: ["a"] });
  await clock.advanceAsync(100);
  assert.equal(a.reason, error);
  const b = embed({ values: ["b"] });
  await clock.advanceAsync(2800);
  assert.equal(b.status, "pending");
  await clock.advanceAsync(200);
  assert.deepEqual(b.value, { embeddings: [[1]], warnings: [] });
});

test("a model that gives too few vectors: RESULT_COUNT", async () => {
  const { clock, embed } = rig({}, { doEmbed: async () => ({ embeddings: [], warnings: [] }) });
  const call = embed({ values: ["a"] });
  await clock.advanceAsync(100);
  assertCode(call, "RESULT_COUNT");
});

test("wrong options are refused when the middleware is made", () => {
  assert.throws(() => coalesce({ maxBatchSize: 0 }), /maxBatchSize must be an integer >= 1/);
  assert.throws(() => coalesce({ onBatcher: 3 } as never), /onBatcher must be a function/);
  assert.throws(() => coalesce({ colour: 3 } as never), /unknown option colour/);
  assert.throws(() => coalesce(null as never), /takes an object of options, got null/);
});

test("what a caller is shown of a shared request is its share of the cost, and of a list by texts its own", async () => {
  const model = {
    modelId: "m",
    maxEmbeddingsPerCall: 10,
    doEmbed: async ({ values }: { values: string[] }) => ({
      embeddings: values.map(() => [1]),
      usage: { tokens: 8 },
      providerMetadata: {
        gateway: { cost: "0.008", generationId: "g" },
        openrouter: { usage: { cost: 0.008, promptTokens: 8 } },
        echo: { chunks: values },
      },
      warnings: [],
    }),
  };
  const { wrapEmbed } = coalesce();
  const calls = ["aaaa", "bbbb"].map((text) => wrapEmbed({ params: { values: [text] }, model: model as never }));
  for (const [i, result] of ((await Promise.all(calls)) as any[]).entries()) {
    assert.deepEqual(result.providerMetadata, {
      echo: { chunks: [["aaaa", "bbbb"][i]] },
      gateway: { cost: "0.004", generationId: "g" },
      openrouter: { usage: { cost: 0.004, promptTokens: 4 } },
    });
  }
});
