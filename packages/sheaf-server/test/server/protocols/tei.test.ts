import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../../dist/index.js";
import { doubling, serving } from "../serving.js";
import { embeddingTexts, judgingTexts, tokenVectors } from "../text-models.js";

test("/embed gives a vector of length 1 for one text and for several; normalize: false leaves it as the model makes it", async (t) => {
  const { post } = await serving(t, [doubling(), embeddingTexts]);
  assert.deepEqual((await post("/embed", { inputs: "abc" })).json, [[0.6, 0.8]]);
  const raw = await post("/embed", { inputs: ["abc", "a"], normalize: false, truncate: true, prompt_name: null });
  assert.deepEqual([raw.status, raw.json], [200, [[3, 4], [1, 4]]]); // prettier-ignore
  assert.deepEqual((await post("/embed", { inputs: "abc", dimensions: 1 })).json, [[1]]);
});

test("the error for a text that is too long has its token count and the limit, or a lower bound of the count", async (t) => {
  const counting: ModelDefinition = {
    ...embeddingTexts,
    run: (texts: string[]) =>
      texts.map(({ length }) => ({
        vector: Float32Array.of(length, 4),
        tokens: Math.min(9, length),
        truncated: length > 9,
        ...(length > 9 && { textTokens: Math.min(20, length), isReadWhole: length <= 20 }),
      })),
  };
  const { post } = await serving(t, [counting]);
  const refusal = async (text: string): Promise<string> =>
    (await post("/embed", { inputs: text, truncate: false })).json.error;
  assert.equal(await refusal("x".repeat(10)), "inputs has 10 tokens, more than the model's 9, and truncate is false.");
  assert.match(await refusal("x".repeat(21)), /^inputs has at least 20 tokens, more than the model's 9, and/);
});

test("/predict gives the labels of a text, or a list for each of several; the likeliest first", async (t) => {
  const { post } = await serving(t, [embeddingTexts, judgingTexts]);
  const four = [
    { score: 0.75, label: "long" },
    { score: 0.25, label: "short" },
  ];
  assert.deepEqual((await post("/predict", { inputs: "four" })).json, four);
  assert.deepEqual((await post("/predict", { inputs: ["four"] })).json, four);
  const { json } = await post("/predict", { inputs: [["four"], ["a"]], raw_scores: true });
  assert.deepEqual(json, [
    [{ score: 4, label: "long" }, { score: -4, label: "short" }],
    [{ score: 1, label: "long" }, { score: -1, label: "short" }],
  ]); // prettier-ignore
});

test("/predict with parameters, as the Hub's clients send them, gives a list for one text too, of top_k labels", async (t) => {
  const { post } = await serving(t, [judgingTexts]);
  const ask = async (parameters: object): Promise<unknown> =>
    (await post("/predict", { inputs: "four", parameters })).json;
  assert.deepEqual(await ask({ top_k: 1 }), [[{ score: 0.75, label: "long" }]]);
  assert.equal(((await ask({})) as unknown[][])[0]!.length, 2);
});

test("/predict gives pairs of texts to a model that takes pairs, and to no other", async (t) => {
  const pairs = {
    ...judgingTexts,
    name: "entails",
    input: { kind: "text-pair", maxTokens: 99 } as const,
    run: (items: { query: string; text: string }[]) =>
      items.map(({ query, text }) => ({ scores: Float32Array.of(query.length, text.length) })),
  };
  const both = {
    ...judgingTexts,
    name: "both",
    input: { kind: "text", takesPairs: true } as const,
    run: (items: (string | { query: string; text: string })[]) =>
      items.map((item) => ({
        scores: typeof item === "string" ? Float32Array.of(item.length, 0) : Float32Array.of(0, item.text.length),
      })),
  };
  const { post } = await serving(t, [judgingTexts, pairs, both]);
  const mixed = await post("/predict", { inputs: [["ab"], ["a", "bcd"]], model: "both" });
  assert.deepEqual(
    [mixed.json[0][0], mixed.json[1][0]],
    [
      { score: 2, label: "short" },
      { score: 3, label: "long" },
    ],
  );
  const { json } = await post("/predict", { inputs: ["ab", "c"], model: "entails" });
  assert.deepEqual(json, [
    { score: 2, label: "short" },
    { score: 1, label: "long" },
  ]);
  const refused = [
    await post("/predict", { inputs: ["ab", "c"] }),
    await post("/predict", { inputs: "ab", model: "entails" }),
    await post("/predict", { inputs: ["ab", "c"], model: "entails", raw_scores: true }),
  ];
  assert.deepEqual(
    refused.map(({ status, json }) => [status, json.error]),
    [
      [422, "inputs must be one text for judge, got an array of 2."],
      [422, "inputs must be a pair of texts for entails, got an array of 1."],
      [422, "raw_scores: entails gives no logits."],
    ],
  );
});

test("/embed_all gives the vectors of every token, where a model has them", async (t) => {
  const { post } = await serving(t, [embeddingTexts, tokenVectors]);
  const { json } = await post("/embed_all", { inputs: ["to be", "or"] });
  assert.deepEqual(json, [[[2, 0], [2, 1]], [[2, 0]]]); // prettier-ignore
  assert.deepEqual((await post("/embed_all", { inputs: "a" })).json, [[[1, 0]]]);
  const other = await post("/embed_all", { inputs: "a", model: "embed" });
  assert.deepEqual([other.status, other.json.error_type], [422, "Validation"]);
});

test("/info describes the first text model and its limits", async (t) => {
  const settings = { queueMaxSize: 77, maxInputs: 5, maxBatchSize: 3 };
  const server = await serving(t, [doubling(), embeddingTexts, judgingTexts], settings);
  const { status, json } = await server.get("/info");
  assert.equal(status, 200);
  assert.deepEqual(json.model_type, { embedding: { pooling: "cls" } });
  const { model_id, max_input_length, max_concurrent_requests, max_client_batch_size, max_batch_requests } = json;
  const facts = [model_id, max_input_length, max_concurrent_requests, max_client_batch_size, max_batch_requests];
  assert.deepEqual(facts, ["embed", 9, 77, 5, 3]);
  const labels = await serving(t, [judgingTexts]);
  assert.deepEqual((await labels.get("/info")).json.model_type, {
    classifier: { id2label: { 0: "short", 1: "long" }, label2id: { short: 0, long: 1 } },
  });
  const none = await (await serving(t, [doubling()])).get("/info");
  assert.deepEqual([none.status, none.json.error_type], [404, "Validation"]);
});

test("TEI's routes of tokens are not there, and the error names the path", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  for (const path of ["/tokenize", "/decode"]) {
    const { status, json } = await post(path, { inputs: "a" });
    assert.equal(status, 404);
    assert.match(JSON.stringify(json), new RegExp(`There is no ${path}; /docs lists the routes`));
  }
});
