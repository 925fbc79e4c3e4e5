import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { APIError } from "openai";
import type { ModelDefinition } from "../../dist/index.js";
import { gated, measuringTexts, serving } from "./serving.js";

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

test("openai's client lists the models", async (t) => {
  const { url } = await serving(t, [measuringTexts("first"), measuringTexts("second")]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const { data } = await client.models.list();
  assert.deepEqual(
    data.map(({ id }) => id),
    ["first", "second"],
  );
});

test("openai's client retrieves a model, also one with a slash in its name", async (t) => {
  const { url } = await serving(t, [measuringTexts("first"), measuringTexts("org/second")]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const listed = (await client.models.list()).data;
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

test("null stands for a field that is not given", async (t) => {
  const { post } = await serving(t, [measuringTexts()]);
  const nulls = { encoding_format: null, dimensions: null, user: null };
  const { status, json } = await post("/v1/embeddings", { model: "measure", input: "x", ...nulls });
  assert.deepEqual([status, json.data[0].embedding], [200, [1, 120]]);
});

test("openai's client shows the message, the code and the path of an error", async (t) => {
  const { url } = await serving(t, [measuringTexts()]);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  await assert.rejects(client.embeddings.create({ model: "measure", input: ["a", ""] }), (error) => {
    assert.ok(error instanceof APIError);
    assert.deepEqual([error.status, error.code, error.param], [422, "INVALID_INPUT", "input[1]"]);
    assert.match(error.message, /input\[1\] must be a text that is not empty/);
    return true;
  });
});

test("openai's client waits as long as a full queue asks, then succeeds", async (t) => {
  const model = {
    ...gated("measure"),
    input: { kind: "text", maxTokens: 9 } as const,
    run: measuringTexts().run,
  };
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const inner = model.run as (texts: string[]) => unknown[];
  const server = await serving(t, [{ ...model, run: async (texts: string[]) => (await released, inner(texts)) }], {
    maxBatchSize: 1,
    queueMaxSize: 1,
  });
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
