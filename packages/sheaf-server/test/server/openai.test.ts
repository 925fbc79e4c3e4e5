import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { APIError } from "openai";
import type { ModelDefinition } from "../../dist/index.js";
import { opening } from "../asking.js";
import { measuringTexts, serving } from "./serving.js";
import { embeddingTexts } from "./text-models.js";

test("openai's client embeds one text and several, as floats and as base64, with the same result", async (t) => {
  const { url } = await serving(t, [measuringTexts()]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  // Asked for neither, the client asks for base64 and decodes it.
  for (const format of [undefined, "float" as const]) {
    const { data, model, usage } = await client.embeddings.create({
      model: "measure",
      input: ["some words", "x"],
      ...(format && { encoding_format: format }),
    });
    assert.deepEqual(
      data.map(({ index, embedding }) => [index, Array.from(embedding)]),
      [
        [0, [10, 115]],
        [1, [1, 120]],
      ],
    );
    assert.equal(model, "measure");
    assert.deepEqual(usage, { prompt_tokens: 3, total_tokens: 3 });
  }
  const one = await client.embeddings.create({ model: "measure", input: "x" });
  assert.deepEqual(Array.from(one.data[0]!.embedding), [1, 120]);
});

test("the fields of TEI's, Jina's, NVIDIA's and vLLM's clients are taken, and obeyed where they change something", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const embed = async (more: object) => {
    const { status, json } = await post("/v1/embeddings", { input: "abc", ...more });
    return status === 200 ? json.data[0].embedding : `${status} ${json.error.param}: ${json.error.message}`;
  };
  assert.deepEqual(await embed({}), [3, 4], "no model is named");
  const idle = { embedding_type: "float", task: "text-matching", late_chunking: false, truncate: "END", priority: 0 };
  assert.deepEqual(await embed(idle), [3, 4]);
  assert.deepEqual(
    await embed({ normalized: false, truncate: true, task: null, user: null, dimensions: null }),
    [3, 4],
  );
  const unit = await embed({ normalized: true });
  assert.ok(Math.abs(unit[0] - 0.6) < 1e-6 && Math.abs(unit[1] - 0.8) < 1e-6, String(unit));
  assert.equal(typeof (await embed({ embedding_type: "base64" })), "string");
  assert.match(await embed({ input: "more than nine", truncate: "NONE" }), /^422 input: .*truncate is "NONE"/);
  assert.match(await embed({ input: "more than nine", truncate: false }), /^422 input: .*truncate is false/);
  assert.match(await embed({ late_chunking: true }), /^422 late_chunking: /);
  assert.match(await embed({ embedding_type: "int4" }), /^422 embedding_type: /);
  assert.match(await embed({ embedding_type: "base64", encoding_format: "float" }), /^422 embedding_type: /);
});

test("a model's task follows from its inputs and outputs, unless its definition names one", async (t) => {
  const run = (items: unknown[]): unknown[] => items;
  const vector = { kind: "vector", length: 2 } as const;
  const kinds: [string, ModelDefinition["input"], ModelDefinition["output"]][] = [
    ["embedding", { kind: "text" }, vector],
    ["text", { kind: "text" }, { ...vector, isEmbedding: false }],
    ["text", { kind: "text" }, { kind: "text" }],
    ["classification", { kind: "text" }, { kind: "labels", labels: ["good", "bad"] }],
    ["rerank", { kind: "text-pair", maxTokens: 9 }, { kind: "score" }],
    ["json", { kind: "json" }, { kind: "json" }],
    ["json", { kind: "text" }, { kind: "json" }],
    ["tensor", { kind: "floats", length: 3 }, vector],
  ];
  const models = kinds.map(([, input, output], i): ModelDefinition => ({ name: `model ${i}`, input, output, run }));
  const server = await serving(t, [...models, { ...models[0]!, name: "named", task: "haiku" }]);
  const { data } = (await server.get("/v1/models")).json;
  const tasks = data.map(({ task }: { task: string }) => task);
  assert.deepEqual(tasks, [...kinds.map(([task]) => task), "haiku"]);
});

test("openai's client lists the models and retrieves one, also one with a slash in its name", async (t) => {
  const { url } = await serving(t, [measuringTexts("first"), measuringTexts("org/second")]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const listed = (await client.models.list()).data;
  assert.deepEqual(listed.map(({ id }) => id), ["first", "org/second"]); // prettier-ignore
  for (const model of listed) assert.deepEqual(await client.models.retrieve(model.id), model);
  await assert.rejects(client.models.retrieve("none"), (error) => {
    assert.ok(error instanceof APIError);
    assert.deepEqual([error.status, error.code, error.type], [404, "MODEL_NOT_FOUND", "not_found_error"]);
    assert.match(error.message, /no model "none"; served are: first, org\/second/);
    return true;
  });
});

test("dimensions cuts the vectors of a model that allows it, and brings them back to length 1", async (t) => {
  const matryoshka = (name: string, dimensions: readonly number[] | "any"): ModelDefinition => ({
    name,
    input: { kind: "text", maxTokens: 9 },
    output: { kind: "vector", length: 4, dimensions },
    run: (texts: string[]) => texts.map(() => ({ vector: Float32Array.of(3, 4, 12, 0), tokens: 1, truncated: false })),
  });
  const { url } = await serving(t, [matryoshka("any", "any"), matryoshka("some", [2]), measuringTexts()]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const embed = async (model: string, dimensions: number): Promise<number[]> =>
    Array.from((await client.embeddings.create({ model, input: "x", dimensions })).data[0]!.embedding);
  const near = (actual: number[], expected: number[]): void => {
    assert.equal(actual.length, expected.length);
    assert.ok(
      actual.every((value, i) => Math.abs(value - expected[i]!) < 1e-6),
      String(actual),
    );
  };
  near(await embed("any", 2), [0.6, 0.8]);
  near(await embed("any", 3), [3 / 13, 4 / 13, 12 / 13]);
  near(await embed("some", 2), [0.6, 0.8]);
  assert.deepEqual(await embed("some", 4), [3, 4, 12, 0], "its own length as it is");
  for (const [model, dimensions, message] of [
    ["any", 5, /dimensions must be an integer from 1 to 4, got 5/],
    ["any", 0, /dimensions must be an integer from 1 to 4, got 0/],
    ["any", 1.5, /dimensions must be an integer from 1 to 4, got 1.5/],
    ["some", 3, /dimensions must be one of 2, 4, got 3/],
    ["measure", 1, /dimensions must be 2, the only length measure gives/],
  ] as const)
    await assert.rejects(embed(model, dimensions), (error) => {
      assert.ok(error instanceof APIError);
      assert.deepEqual([error.status, error.param], [422, "dimensions"]);
      assert.match(error.message, message);
      return true;
    });
});

test("openai's client waits as long as a full queue asks, then succeeds", async (t) => {
  const { opened: released, open: release } = opening();
  const { run, ...model } = measuringTexts();
  const held = async (texts: string[]) => (await released, (run as (texts: string[]) => unknown[])(texts));
  const server = await serving(t, [{ ...model, run: held }], { maxBatchSize: 1, queueMaxSize: 1 });
  const served = server.models.all[0]!;
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 5 });
  const accepted = [0, 1].map(() => server.post("/v1/embeddings", { model: "measure", input: "x" }));
  while (served.stats().queued < 1) await new Promise((resolve) => setImmediate(resolve));
  const retried = client.embeddings.create({ model: "measure", input: "late" });
  while (server.models.all[0]!.stats().items.rejected < 1) await new Promise((resolve) => setImmediate(resolve));
  release();
  assert.deepEqual(Array.from((await retried).data[0]!.embedding), [4, 108]);
  for (const { status } of await Promise.all(accepted)) assert.equal(status, 200);
});

/** Embeds a text as its number, one batch at a time; from `hold` on until `release` no batch ends. */
function numbering(): ModelDefinition & { batches: string[][]; hold(): void; release(): void } {
  let gate = Promise.resolve();
  let open = (): void => undefined;
  const model = {
    name: "number",
    input: { kind: "text", maxTokens: 9 } as const,
    output: { kind: "vector", length: 1 } as const,
    batches: [] as string[][],
    run: async (texts: string[]) => {
      model.batches.push(texts);
      await gate;
      if (texts.includes("bad")) throw new Error("a bad text");
      return texts.map((text) => ({ vector: Float32Array.of(Number(text)), tokens: 1, truncated: false }));
    },
    hold: () => void (gate = new Promise((resolve) => (open = resolve))),
    release: () => open(),
  };
  return model;
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

test("a list of 2,048 texts is answered whole by a queue of 96, and single requests run beside it", async (t) => {
  const model = numbering();
  const server = await serving(t, [model], { queueMaxSize: 96, maxBatchSize: 32, schedulerStrategy: "greedy" });
  model.hold();
  const list = server.post("/v1/embeddings", { model: "number", input: numbers(2048) });
  while (model.batches.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const served = server.models.all[0]!;
  const singles = ["-1", "-2", "-3"].map((input) => server.post("/v1/embeddings", { model: "number", input }));
  const waitingBefore = served.stats().queued;
  while (served.stats().queued < waitingBefore + 3) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(
    served.stats().queued <= 48 + 3,
    `${served.stats().queued} wait: the list takes more than half of the queue`,
  );
  model.release();
  for (const [i, { status, json }] of (await Promise.all(singles)).entries())
    assert.deepEqual([status, json.data[0].embedding], [200, [-1 - i]]);
  const at = model.batches.findIndex((texts) => texts.includes("-3"));
  assert.ok(at >= 1 && at <= 4, `the single requests ran in batch ${at} of ${model.batches.length}`);
  const { status, json } = await list;
  assert.equal(status, 200);
  assert.deepEqual(
    json.data.map(({ embedding }: { embedding: number[] }) => embedding[0]),
    numbers(2048).map(Number),
  );
  assert.equal(json.usage.total_tokens, 2048);
  assert.equal(served.stats().queued, 0);
});

test("two long lists share a queue that holds neither", async (t) => {
  const server = await serving(t, [numbering()], { queueMaxSize: 40, maxBatchSize: 8 });
  const replies = await Promise.all(
    [0, 1].map(() => server.post("/v1/embeddings", { model: "number", input: numbers(300) })),
  );
  for (const { status, json } of replies) assert.deepEqual([status, json.data?.length], [200, 300]);
});

test("a long list fails with its first bad text, and what had not gone in is not run", async (t) => {
  const model = numbering();
  const server = await serving(t, [model], { queueMaxSize: 40, maxBatchSize: 8 });
  const { status } = await server.post("/v1/embeddings", { model: "number", input: ["bad", ...numbers(1000)] });
  assert.equal(status, 500);
  assert.ok(model.batches.flat().length < 100, `${model.batches.flat().length} texts were run`);
  assert.equal((await server.post("/v1/embeddings", { model: "number", input: "7" })).status, 200);
});

test("a long list is refused when the queue is full, and ends at its deadline", async (t) => {
  const model = numbering();
  const server = await serving(t, [model], { queueMaxSize: 8, maxBatchSize: 1, schedulerStrategy: "greedy" });
  model.hold();
  const served = server.models.all[0]!;
  const body = { model: "number", input: numbers(100) };
  const late = await server.post("/v1/embeddings", body, { "x-request-timeout-ms": "50" });
  assert.equal(late.status, 504);
  assert.match(late.json.detail, /^No result within 50 ms: /);
  // Its two pieces end by timers of their own.
  while (served.stats().queued > 0) await new Promise((resolve) => setImmediate(resolve));
  const others = numbers(9).map((input) => server.post("/v1/embeddings", { model: "number", input }));
  while (served.stats().queued < 8) await new Promise((resolve) => setImmediate(resolve));
  const full = await server.post("/v1/embeddings", body);
  assert.deepEqual([full.status, full.json.error.code], [429, "QUEUE_FULL"]);
  assert.match(full.json.detail, /8 items wait \(QUEUE_MAX_SIZE 8\)/);
  model.release();
  const statuses = (await Promise.all(others)).map(({ status }) => status);
  assert.ok(statuses.filter((status) => status === 200).length >= 8, statuses.join());
});
