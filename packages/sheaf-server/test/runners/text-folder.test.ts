import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createBatcher, greedy } from "sheaf";
import { workerThread } from "sheaf/node";
import type { ModelSpec, ModuleSpec } from "../../dist/runners/contract/model-spec.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { folderOf, headWeights, referenceStates, tinyBert, width } from "./made-folders.js";
import { folder } from "./made-models.js";

after(() => rmSync(folder, { recursive: true, force: true }));

interface Result {
  readonly vector: Float32Array;
  readonly scores: Float32Array;
  readonly logits: Float32Array;
  readonly score: number;
  readonly tokens: number;
  readonly truncated: boolean;
}

async function run(spec: ModelSpec, items: readonly unknown[]): Promise<Result[]> {
  const { workerUrl, data } = spec as ModuleSpec;
  const infer = createBatcher<unknown, Result>(workerThread<unknown, Result>(workerUrl, { data }), {
    policy: greedy(),
  });
  try {
    return await infer.many([...items]);
  } finally {
    await infer.close();
  }
}

function assertClose(actual: Float32Array, expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((value, i) =>
    assert.ok(Math.abs(actual[i]! - value) < 1e-5, `${actual.join()} is not ${expected.join()}`),
  );
}

const bert = { architectures: ["BertModel"], hidden_size: width, max_position_embeddings: 16, pad_token_id: 0 };
const texts = ["the cat sits.", "Cat", "The dog runs in the cat.", "zebra"];
const ids = [
  [2, 4, 5, 6, 11, 3],
  [2, 5, 3],
  [2, 4, 8, 9, 10, 12, 4, 5, 11, 3],
  [2, 1, 3],
];
const mean = (states: number[][]): number[] =>
  Array.from({ length: width }, (_, i) => states.reduce((sum, state) => sum + state[i]!, 0) / states.length);

test("sentence embeddings equal the float64 reference, mean pooled and normalised as the folder says", async () => {
  const path = folderOf("sentences", {
    "onnx/model.onnx": tinyBert(),
    "config.json": bert,
    "modules.json": ["Transformer", "Pooling", "Normalize"].map((name) => ({
      type: `sentence_transformers.models.${name}`,
    })),
    "1_Pooling/config.json": {
      word_embedding_dimension: width,
      pooling_mode_mean_tokens: true,
      pooling_mode_cls_token: false,
    },
  });
  const spec = await resolveModel(path);
  assert.deepEqual([spec.name, spec.input], ["sentences", { kind: "text", maxTokens: 16 }]);
  assert.deepEqual(spec.output, { kind: "vector", length: width, pooling: "mean" });
  assert.equal(spec.note, "Runs on cpu. Texts are cut at 16 tokens. mean pooling, normalised.");
  const results = await run(spec, texts);
  results.forEach(({ vector, tokens, truncated }, i) => {
    const expected = mean(referenceStates(ids[i]!));
    const length = Math.hypot(...expected);
    assertClose(
      vector,
      expected.map((value) => value / length),
    );
    assert.deepEqual([tokens, truncated], [ids[i]!.length, false]);
  });
});

test("cls pooling without normalisation, and mean pooling where the folder says nothing", async () => {
  const cls = await resolveModel(
    folderOf("cls", {
      "model.onnx": tinyBert(),
      "config.json": bert,
      "1_Pooling/config.json": { pooling_mode_cls_token: true, pooling_mode_mean_tokens: false },
    }),
  );
  assert.match(cls.note ?? "", /cls pooling, not normalised/);
  (await run(cls, texts)).forEach(({ vector }, i) => assertClose(vector, referenceStates(ids[i]!)[0]!));
  const plain = await resolveModel(folderOf("plain", { "model.onnx": tinyBert(), "config.json": bert }));
  (await run(plain, texts)).forEach(({ vector }, i) => assertClose(vector, mean(referenceStates(ids[i]!))));
});

test("a longer text is cut before its last special token, and says so", async () => {
  const path = folderOf("short", {
    "model.onnx": tinyBert(),
    "config.json": bert,
    "tokenizer_config.json": { model_max_length: 5 },
  });
  const [long, fitting] = await run(await resolveModel(path), ["the cat sits in the dog", "the cat sits"]);
  assertClose(long!.vector, mean(referenceStates([2, 4, 5, 6, 3])));
  assert.deepEqual([long!.tokens, long!.truncated, fitting!.truncated], [5, true, false]);
});

test("a text weighs the tokens that results of such texts had, at most those that fit", async () => {
  const spec = await resolveModel(folderOf("weighed", { "model.onnx": tinyBert(), "config.json": bert }));
  const text = "the cat sits in the dog";
  const [result] = await run(spec, [text]);
  assert.deepEqual([result!.tokens, spec.weigh!(text)], [8, 10]);
  for (let i = 0; i < 200; i++) spec.learnWeight!(text, result);
  assert.equal(spec.weigh!(text), 9);
  assert.equal(spec.weigh!(text.repeat(9)), 16);
});

test("classification gives a share for each label, and the logits behind it", async () => {
  const path = folderOf("classify", {
    "model.onnx": tinyBert(3),
    "config.json": {
      ...bert,
      architectures: ["BertForSequenceClassification"],
      id2label: { 0: "good", 1: "bad", 2: "odd" },
    },
  });
  const spec = await resolveModel(path);
  assert.deepEqual(spec.output, { kind: "labels", labels: ["good", "bad", "odd"] });
  (await run(spec, texts)).forEach(({ scores, logits }, i) => {
    const [first] = referenceStates(ids[i]!);
    const expected = [0, 1, 2].map((label) =>
      first!.reduce((sum, value, j) => sum + value * headWeights[j * 3 + label]!, 0),
    );
    assertClose(logits, expected);
    const powers = expected.map(Math.exp);
    const total = powers.reduce((sum, power) => sum + power, 0);
    assertClose(
      scores,
      powers.map((power) => power / total),
    );
  });
});

test("a cross-encoder scores a query and a text together, with their own token types", async () => {
  const path = folderOf("rerank", {
    "model.onnx": tinyBert(1),
    "config.json": { ...bert, architectures: ["BertForSequenceClassification"], id2label: { 0: "LABEL_0" } },
  });
  const spec = await resolveModel(path);
  assert.deepEqual([spec.input, spec.output], [{ kind: "text-pair", maxTokens: 16 }, { kind: "score" }]);
  const results = await run(spec, [
    { query: "the cat", text: "dog runs" },
    { query: "cat", text: "cat" },
  ]);
  const expected = [
    referenceStates([2, 4, 5, 3, 8, 9, 10, 3], [0, 0, 0, 0, 1, 1, 1, 1]),
    referenceStates([2, 5, 3, 5, 3], [0, 0, 0, 1, 1]),
  ].map(([first]) => 1 / (1 + Math.exp(-first!.reduce((sum, value, j) => sum + value * headWeights[j]!, 0))));
  results.forEach(({ score }, i) => assert.ok(Math.abs(score - expected[i]!) < 1e-5, `${score} is not ${expected[i]}`));
});

test("a cross-encoder gives the logit beside the score", async () => {
  const path = folderOf("logits", {
    "model.onnx": tinyBert(1),
    "config.json": { ...bert, architectures: ["BertForSequenceClassification"], id2label: { 0: "LABEL_0" } },
  });
  const [result] = await run(await resolveModel(path), [{ query: "the cat", text: "dog runs" }]);
  const { score, logit } = result as Result & { logit: number };
  assert.ok(Math.abs(score - 1 / (1 + Math.exp(-logit))) < 1e-6, `${score} is not the sigmoid of ${logit}`);
});

test("config.json names the lengths that a vector may be cut to", async () => {
  const outputOf = async (name: string, more: object): Promise<unknown> =>
    (await resolveModel(folderOf(name, { "model.onnx": tinyBert(), "config.json": { ...bert, ...more } }))).output;
  const own = { kind: "vector", length: width, pooling: "mean" };
  assert.deepEqual(await outputOf("plain", { is_matryoshka: false }), own);
  assert.deepEqual(await outputOf("any-length", { is_matryoshka: true }), { ...own, dimensions: "any" });
  assert.deepEqual(await outputOf("some", { matryoshka_dimensions: [2, 4] }), { ...own, dimensions: [2, 4] });
  await assert.rejects(
    outputOf("wrong", { matryoshka_dimensions: [0] }),
    /matryoshka_dimensions must be an array of int/,
  );
});

test("what a folder lacks, or needs and does not get, is named", async () => {
  const refused = (name: string, files: Record<string, unknown>, message: RegExp): Promise<void> =>
    assert.rejects(resolveModel(folderOf(name, files)), message);
  await refused("no-model", { "config.json": bert }, /no-model has neither model\.onnx nor onnx\/model\.onnx/);
  await refused("no-config", { "model.onnx": tinyBert() }, /no-config has no config\.json/);
  await refused(
    "no-tokenizer",
    { "model.onnx": tinyBert(), "config.json": bert, "tokenizer.json": undefined },
    /has no tokenizer\.json/,
  );
  await refused(
    "bad-tokenizer",
    { "model.onnx": tinyBert(), "config.json": bert, "tokenizer.json": Buffer.from("{") },
    /tokenizer\.json/,
  );
  await refused(
    "bad-model",
    { "model.onnx": Buffer.from("no model"), "config.json": bert },
    /bad-model cannot be served/,
  );
  const max = {
    "model.onnx": tinyBert(),
    "config.json": bert,
    "1_Pooling/config.json": { pooling_mode_max_tokens: true },
  };
  await refused("max-pooling", max, /asks for pooling_mode_max_tokens; mean and cls are served/);
});
