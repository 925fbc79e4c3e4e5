import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createBatcher, greedy } from "sheaf";
import { workerThread } from "sheaf/node";
import type { ModelSpec, ModuleSpec, RunnerSettings } from "../../dist/runners/contract/model-spec.js";
import { modelName, resolveModel } from "../../dist/runners/resolve-model.js";
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
  readonly textTokens?: number;
  readonly isReadWhole?: boolean;
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
const classifier = { ...bert, architectures: ["BertForSequenceClassification"] };
const reranker = { ...classifier, id2label: { 0: "LABEL_0" } };
/** What a head of so many labels makes of the first token's state. */
const logitsOf = (states: readonly number[][], labels = 1): number[] =>
  Array.from({ length: labels }, (_, label) =>
    states[0]!.reduce((sum, value, i) => sum + value * headWeights[i * labels + label]!, 0),
  );
const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit));
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
    "modules.json": [module("Transformer"), module("Pooling", "1_Pooling"), module("Normalize", "2_Normalize")],
    "1_Pooling/config.json": {
      word_embedding_dimension: width,
      pooling_mode_mean_tokens: true,
      pooling_mode_cls_token: false,
    },
  });
  const spec = await resolveModel(path);
  assert.deepEqual([spec.name, spec.input], ["sentences", { kind: "text", maxTokens: 16, prompts: {} }]);
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
  assert.deepEqual([long!.textTokens, long!.isReadWhole, fitting!.textTokens], [8, true, undefined]);
});

test("fields that are not read are named, by file, and not all of many", async () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x${i}${"y".repeat(100)}`, i]));
  const named = async (name: string, config: object): Promise<string | undefined> => {
    const files = { "model.onnx": tinyBert(), "config.json": { ...bert, ...config } };
    const path = folderOf(name, { ...files, "tokenizer_config.json": { model_max_length: 9, cls_token: "[CLS]" } });
    return ((await resolveModel(path)) as ModuleSpec).unreadFields;
  };
  assert.equal(
    await named("unread", { pad_token_id: 0 }),
    "config.json: hidden_size; tokenizer_config.json: cls_token",
  );
  const long = (await named("unread-many", many))!;
  assert.match(long, /^config\.json: hidden_size, x0y+, .* and 11 more; tokenizer_config\.json: cls_token$/);
  assert.ok(long.length < 2_500);
});

test("a text weighs the tokens that results of such texts had, at most those that fit", async () => {
  const spec = await resolveModel(folderOf("weighed", { "model.onnx": tinyBert(), "config.json": bert }));
  const text = "the cat sits in the dog";
  const [result] = await run(spec, [text]);
  assert.deepEqual([result!.tokens, spec.weigh!(text)], [8, 10]);
  for (let i = 0; i < 200; i++) spec.learnWeight!(text, result);
  assert.equal(spec.weigh!(text), 9);
  assert.equal(spec.weigh!(text.repeat(9)), 16);
  // Reading a long text costs more than its tokens in the model: few of them fill a batch.
  const long = "x".repeat(100_000);
  assert.equal(spec.weigh!(long), 16 + 250);
  assert.equal(spec.weigh!({ text: long, cut: "left" }), 16 + 1_000);
});

test("classification gives a share for each label, and the logits behind it", async () => {
  const path = folderOf("classify", {
    "model.onnx": tinyBert(3),
    "config.json": { ...classifier, id2label: { 0: "good", 1: "bad", 2: "odd" } },
  });
  const spec = await resolveModel(path);
  assert.deepEqual(spec.output, { kind: "labels", labels: ["good", "bad", "odd"] });
  (await run(spec, texts)).forEach(({ scores, logits }, i) => {
    const expected = logitsOf(referenceStates(ids[i]!), 3);
    assertClose(logits, expected);
    const powers = expected.map(Math.exp);
    const total = powers.reduce((sum, power) => sum + power, 0);
    assertClose(
      scores,
      powers.map((power) => power / total),
    );
  });
});

test("a classifier judges two texts together too, with their own token types", async () => {
  const path = folderOf("entails", {
    "model.onnx": tinyBert(3),
    "config.json": { ...classifier, id2label: { 0: "contradiction", 1: "entailment", 2: "neutral" } },
  });
  const spec = await resolveModel(path);
  assert.ok(spec.input.kind === "text" && spec.input.takesPairs === true);
  const [pair] = await run(spec, [{ query: "the cat", text: "dog runs" }, "cat"]);
  assertClose(pair!.logits, logitsOf(referenceStates([2, 4, 5, 3, 8, 9, 10, 3], [0, 0, 0, 0, 1, 1, 1, 1]), 3));
});

test("a cross-encoder scores a query and a text together, with their own token types", async () => {
  const path = folderOf("rerank", { "model.onnx": tinyBert(1), "config.json": reranker });
  const spec = await resolveModel(path);
  assert.deepEqual([spec.input, spec.output], [{ kind: "text-pair", maxTokens: 16 }, { kind: "score" }]);
  const results = await run(spec, [
    { query: "the cat", text: "dog runs" },
    { query: "cat", text: "cat" },
  ]);
  const expected = [
    referenceStates([2, 4, 5, 3, 8, 9, 10, 3], [0, 0, 0, 0, 1, 1, 1, 1]),
    referenceStates([2, 5, 3, 5, 3], [0, 0, 0, 1, 1]),
  ].map((states) => sigmoid(logitsOf(states)[0]!));
  results.forEach((result, i) => {
    const { score, logit } = result as Result & { logit: number };
    assert.ok(Math.abs(score - expected[i]!) < 1e-5, `${score} is not ${expected[i]}`);
    assert.ok(Math.abs(score - sigmoid(logit)) < 1e-6, `${score} is not the sigmoid of ${logit}`);
  });
});

test("a folder's ranges are read, and refused where they do not fit their length", async () => {
  const files = { "model.onnx": tinyBert(), "config.json": bert };
  const good = { [width]: { min: [-1, -1, -1, -1], max: [1, 1, 1, 1] } };
  const folder = folderOf("ranges", { ...files, "quantization_ranges.json": good });
  assert.deepEqual((await resolveModel(folder)).output, {
    kind: "vector",
    length: width,
    pooling: "mean",
    ranges: good,
  });
  for (const [index, wrong] of [
    [],
    { [width]: null },
    { 3: good[width] },
    { [width]: { min: [2, 0, 0, 0], max: [1, 1, 1, 1] } },
  ].entries())
    await assert.rejects(
      resolveModel(folderOf(`ranges-${index}`, { ...files, "quantization_ranges.json": wrong })),
      /quantization_ranges\.json (is not an object|must have under "\d" as many numbers)/,
    );
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
  const merges = { type: "BPE", vocab: { x: 0 }, merges: [["a", "b"]] };
  const charsmap = { type: "Precompiled", precompiled_charsmap: "AAA=" };
  const cases: [name: string, files: Record<string, unknown>, message: RegExp][] = [
    ["no-model", { "model.onnx": undefined }, /no-model has neither model\.onnx nor onnx\/model\.onnx/],
    ["no-config", { "config.json": undefined }, /no-config has no config\.json/],
    ["no-tokenizer", { "tokenizer.json": undefined }, /has no tokenizer\.json/],
    ["bad-tokenizer", { "tokenizer.json": Buffer.from("{") }, /tokenizer\.json/],
    ["bad-merges", { "tokenizer.json": { model: merges } }, /tokenizer\.json: Token `a` out of vocabulary/],
    // The library ends its process.
    ["bad-normalizer", { "tokenizer.json": { model: { ...merges, merges: [] }, normalizer: charsmap } }, /bad-normalizer cannot be served: .*SIGABRT/],
    ["bad-model", { "model.onnx": Buffer.from("no model") }, /bad-model cannot be served/],
  ]; // prettier-ignore
  for (const [name, files, message] of cases) {
    const path = folderOf(name, { "model.onnx": tinyBert(), "config.json": bert, ...files });
    await assert.rejects(resolveModel(path), message, name);
  }
});

test("files of a folder that contradict each other, and values that are none, are refused by name", async () => {
  const two = { ...classifier, id2label: { 0: "a", 1: "b" } };
  const cases: [string, Record<string, unknown>, RegExp][] = [
    ["one label of two", { "model.onnx": tinyBert(2), "config.json": reranker }, /gives 2 scores for 1 label/],
    ["two labels of one", { "model.onnx": tinyBert(1), "config.json": two }, /gives 1 scores for 2 labels/],
    ["num_labels", { "model.onnx": tinyBert(2), "config.json": { ...two, num_labels: 1 } }, /num_labels is 1, and id2label has 2: make them agree/],
    ["matryoshka", { "config.json": { ...bert, matryoshka_dimensions: [2, 8] } }, /vectors of 4 numbers, and matryoshka_dimensions has 8/],
    ...[0, -5, 0.5, 1e9, "9"].map((value): [string, Record<string, unknown>, RegExp] => [
      `max_seq_length ${value}`,
      { "sentence_bert_config.json": { max_seq_length: value } },
      new RegExp(`max_seq_length must be an integer from 1 to 1000000, got ${JSON.stringify(value)}`),
    ]),
    ...[0, -1, "9"].map((value): [string, Record<string, unknown>, RegExp] => [
      `model_max_length ${value}`,
      { "tokenizer_config.json": { model_max_length: value } },
      /tokenizer_config\.json: model_max_length must be an integer >= 1/,
    ]),
    ...[0.5, 1e9, -2, "0", 13].map((value): [string, Record<string, unknown>, RegExp] => [
      `pad_token_id ${value}`,
      { "config.json": { ...bert, pad_token_id: value, vocab_size: 13 } },
      /pad_token_id must be a token's id, an integer from 0 to 12/,
    ]),
    ["positions", { "config.json": { ...bert, max_position_embeddings: 0 } }, /max_position_embeddings must be an integer >= 1, got 0/],
  ]; // prettier-ignore
  for (const [what, files, message] of cases) {
    const name = `contradiction-${what.replaceAll(" ", "-")}`;
    const path = folderOf(name, { "model.onnx": tinyBert(), "config.json": bert, ...files });
    await assert.rejects(resolveModel(path), message, what);
  }
  const limits = { "tokenizer_config.json": { model_max_length: 1e30 }, "sentence_bert_config.json": { max_seq_length: null } }; // prettier-ignore
  const config = { ...bert, pad_token_id: -1 };
  const { input } = await resolveModel(
    folderOf("no-limits", { "model.onnx": tinyBert(), "config.json": config, ...limits }),
  );
  assert.deepEqual(input, { kind: "text", maxTokens: 16, prompts: {} });
});

const module = (name: string, path = ""): object => ({ type: `sentence_transformers.models.${name}`, path });

/** The vectors of `texts`, from a folder of a tiny BERT. */
async function vectorsOf(
  name: string,
  files: Record<string, unknown>,
  settings?: RunnerSettings,
): Promise<Float32Array[]> {
  const path = folderOf(name, { "model.onnx": tinyBert(), "config.json": bert, ...files });
  return (await run(await resolveModel(path, settings), texts)).map(({ vector }) => vector);
}

const column = (states: number[][], i: number): number[] => states.map((state) => state[i]!);
const over = (states: number[][], of: (values: number[]) => number): number[] =>
  Array.from({ length: width }, (_, i) => of(column(states, i)));
const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
const poolings: Record<string, (states: number[][]) => number[]> = {
  cls: (states) => states[0]!,
  lasttoken: (states) => states.at(-1)!,
  max: (states) => over(states, (values) => Math.max(...values)),
  mean,
  mean_sqrt_len_tokens: (states) => over(states, (values) => sum(values) / Math.sqrt(values.length)),
  weightedmean: (states) =>
    over(states, (values) => sum(values.map((value, i) => value * (i + 1))) / sum(values.map((_, i) => i + 1))),
};
const flags: Record<string, string> = {
  cls: "pooling_mode_cls_token",
  lasttoken: "pooling_mode_lasttoken",
  max: "pooling_mode_max_tokens",
  mean: "pooling_mode_mean_tokens",
  mean_sqrt_len_tokens: "pooling_mode_mean_sqrt_len_tokens",
  weightedmean: "pooling_mode_weightedmean_tokens",
};

for (const [mode, expected] of Object.entries(poolings))
  test(`${mode} pooling is obeyed${mode === "cls" ? " in both spellings, wherever modules.json has it, and as a setting" : ""}`, async () => {
    const allOff = Object.fromEntries(Object.values(flags).map((flag) => [flag, false]));
    const layouts: Record<string, [Record<string, unknown>, RunnerSettings?]> = {
      new: [{
        "modules.json": [module("Transformer"), module("Pooling", "1_Pooling")],
        "1_Pooling/config.json": { embedding_dimension: width, pooling_mode: mode, include_prompt: true },
      }],
      old: [{ "1_Pooling/config.json": { word_embedding_dimension: width, ...allOff, [flags[mode]!]: true } }],
      elsewhere: [{
        "modules.json": [module("Transformer"), module("Pooling", "pool")],
        "pool/config.json": { embedding_dimension: width, pooling_mode: [mode] },
        "1_Pooling/config.json": { pooling_mode_mean_tokens: true },
      }],
      setting: [{}, { pooling: [mode] }],
    }; // prettier-ignore
    // One mode shows the layouts, one layout the modes.
    const shown = Object.entries(layouts).filter(([layout]) => mode === "cls" || layout === "new");
    for (const [layout, [files, settings]] of shown) {
      const vectors = await vectorsOf(`${mode}-${layout}`, files, settings);
      vectors.forEach((vector, i) => assertClose(vector, expected(referenceStates(ids[i]!))));
    }
  });

test("several poolings are joined, and Dense and Normalize follow in the order of modules.json", async () => {
  const weights = Float32Array.from({ length: 3 * 2 * width }, (_, i) => Math.sin(i));
  const bias = Float32Array.of(0.1, -0.2, 0.3);
  const vectors = await vectorsOf("dense", {
    "modules.json": [
      module("Transformer"),
      module("Pooling", "1_Pooling"),
      module("Dense", "2_Dense"),
      module("Normalize", "3_Normalize"),
    ],
    "1_Pooling/config.json": { embedding_dimension: width, pooling_mode: ["cls", "mean"] },
    "2_Dense/config.json": {
      in_features: 2 * width,
      out_features: 3,
      bias: true,
      activation_function: "torch.nn.modules.activation.Tanh",
    },
    "2_Dense/model.safetensors": safetensors({ "linear.weight": weights, "linear.bias": bias }),
  });
  vectors.forEach((vector, i) => {
    const states = referenceStates(ids[i]!);
    const joined = [...states[0]!, ...mean(states)];
    const dense = [0, 1, 2].map((row) =>
      Math.tanh(sum(joined.map((value, j) => value * weights[row * joined.length + j]!)) + bias[row]!),
    );
    assertClose(
      vector,
      dense.map((value) => value / Math.hypot(...dense)),
    );
  });
});

test("only the tensors that a Dense module needs are read, and tensors that overlap are refused", async () => {
  const dense = (name: string, weights: Uint8Array, config: object = {}): Promise<Float32Array[]> =>
    vectorsOf(name, {
      "modules.json": [module("Transformer"), module("Pooling", "1_Pooling"), module("Dense", "2_Dense")],
      "1_Pooling/config.json": { pooling_mode: "mean" },
      "2_Dense/config.json": { in_features: width, out_features: 1, bias: false, ...config },
      "2_Dense/model.safetensors": weights,
    });
  const weight = Float32Array.from({ length: width }, (_, i) => i);
  const other = { other: new Float32Array(100) };
  const file = (edit: (header: any) => void): Uint8Array => safetensors({ "linear.weight": weight, ...other }, edit);
  await dense("dense-other", file((header) => (header.other.dtype = "BF16"))); // prettier-ignore
  const refused: [string, Uint8Array, RegExp, object?][] = [
    ["overlap", file((header) => (header.other.data_offsets = [8, 416])), /linear\.weight and other overlap/],
    ["same", file((header) => Object.assign(header, Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`t${i}`, header.other])))), /other and t0 overlap/],
    ["outside", file((header) => (header.other.data_offsets = [16, 417])), /data_offsets of other do not lie in the file/],
    ["backwards", file((header) => (header.other.data_offsets = [20, 16])), /data_offsets of other do not/],
    ["no offsets", file((header) => (header.other = null)), /data_offsets of other do not/],
    ["type", file((header) => (header["linear.weight"].dtype = "BF16")), /linear\.weight is BF16; F32, F16 and F64 are served/],
    ["length", file(() => undefined), /linear\.weight must have 8 numbers, got 4/, { out_features: 2 }],
    ["negative", file(() => undefined), /in_features and out_features must be integers >= 1/, { in_features: -2, out_features: -2 }],
    ["bias", file(() => undefined), /linear\.bias must have 1 numbers, got none/, { bias: true }],
    ["cut", file(() => undefined).subarray(0, 40), /is not a safetensors file/],
    ["no JSON", Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 0, 0, 0]), Buffer.from("root")]), /is not JSON: it has a syntax error/],
  ]; // prettier-ignore
  for (const [what, bytes, message, config] of refused)
    await assert.rejects(dense(`dense-${what.replace(" ", "-")}`, bytes, config), message, what);
});

test("a file that is no JSON is named without its bytes, and a pipe is not read", async () => {
  const secret = folderOf("secret", { "target": Buffer.from("root:x:0:0:secret") }); // prettier-ignore
  for (const name of ["config.json", "tokenizer.json", "modules.json"]) {
    const path = folderOf(`linked-${name}`, { "model.onnx": tinyBert(), "config.json": bert, [name]: undefined });
    rmSync(join(path, name), { force: true });
    symlinkSync(join(secret, "target"), join(path, name));
    await assert.rejects(resolveModel(path), (error: Error) => {
      assert.match(error.message, new RegExp(`${name} is not JSON: it has a syntax error`));
      assert.doesNotMatch(error.message, /root|secret:|x:0/);
      return true;
    });
    rmSync(join(path, name));
    execFileSync("mkfifo", [join(path, name)]);
    await assert.rejects(resolveModel(path), new RegExp(`${name} is not a regular file`));
  }
});

/** A file of float32 tensors. */
function safetensors(
  tensors: Readonly<Record<string, Float32Array>>,
  edit: (header: any) => void = () => undefined,
): Uint8Array {
  let at = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, { length, byteLength }]) => {
      const entry = { dtype: "F32", shape: [length], data_offsets: [at, at + byteLength] };
      at += byteLength;
      return [name, entry];
    }),
  );
  edit(header);
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([size, json, ...Object.values(tensors).map((tensor) => Buffer.from(tensor.buffer))]);
}

for (const type of ["float16", "double", "int8", "uint8"] as const)
  for (const isPooled of [false, true])
    test(`a graph that gives ${type}${isPooled ? ", pooled" : ""} gives the same numbers`, async () => {
      const [scale, zero] = type === "int8" ? [50, 0] : type === "uint8" ? [50, 128] : [1, 0];
      const most = type === "double" ? 1e-5 : type === "float16" ? 2e-3 : 0.51;
      const files = { "model.onnx": tinyBert({ type, isPooled }) };
      const vectors = await vectorsOf(`${type}${isPooled ? "-pooled" : ""}`, files);
      vectors.forEach((vector, i) => {
        assert.ok(vector instanceof Float32Array);
        mean(referenceStates(ids[i]!)).forEach((value, j) => {
          const expected = value * scale! + zero!;
          assert.ok(Math.abs(vector[j]! - expected) < most, `${vector.join()} has not ${expected}`);
        });
      });
    });

test("logits are never served as embeddings, whatever the head is called", async () => {
  const refused = (architecture: string, graph: Uint8Array, message: RegExp): Promise<void> => {
    const config = { ...bert, architectures: [architecture] };
    return assert.rejects(vectorsOf(architecture, { "model.onnx": graph, "config.json": config }), message);
  };
  const why = /is no embedding model: export it for feature extraction/;
  await refused("BertForTokenClassification", tinyBert({ output: "logits" }), why);
  await refused("BertForMaskedLM", tinyBert({ output: "logits" }), why);
  await refused("GPT2LMHeadModel", tinyBert({ output: "scores" }), why);
  await refused("BertForQuestionAnswering", tinyBert({ output: "start_logits" }), why);
  await refused("", tinyBert({ output: "logits" }), /gives logits, and it is no embedding model/);
  // The head is not in the graph: many models for embeddings are named after what they were trained as.
  const config = { ...bert, architectures: ["BertForMaskedLM"] };
  const [first] = await vectorsOf("headless", { "config.json": config });
  assertClose(first!, mean(referenceStates(ids[0]!)));
});

test("only the text of a pair is cut, and a query that leaves no room for it is refused", async () => {
  const path = folderOf("long-query", { "model.onnx": tinyBert(1), "config.json": reranker });
  const spec = await resolveModel(path);
  const texts = ["dog runs in the cat. the dog", "the cat sits in the dog", "in in in in in in in in"];
  const long = texts.map((text) => ({ query: "the cat sits in the dog . the", text }));
  const [one, two, three] = await run(spec, long);
  assert.deepEqual([one!.tokens, one!.truncated], [16, true]);
  // [CLS] 8 of the query [SEP] 5 of the text [SEP]
  const states = referenceStates(
    [2, 4, 5, 6, 12, 4, 8, 11, 4, 3, 8, 9, 10, 12, 4, 3],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
  );
  assert.ok(Math.abs(one!.score - sigmoid(logitsOf(states)[0]!)) < 1e-5);
  assert.equal(new Set([one!.score, two!.score, three!.score]).size, 3);
  const query = "the cat sits in the dog . the cat sits in the dog . the";
  await assert.rejects(run(spec, [{ query, text: "cat" }]), {
    code: "INVALID_INPUT",
    message: /query has more than 12 tokens, all that 16 tokens leave beside a text/,
  });
});

test("a graph of a fixed length or of one text a run is served as it is", async () => {
  const fixed = await vectorsOf("fixed-length", { "model.onnx": tinyBert({ axes: ["batch", 12] }) });
  const one = await vectorsOf("one-by-one", { "model.onnx": tinyBert({ axes: [1, "tokens"] }) });
  for (const vectors of [fixed, one])
    vectors.forEach((vector, i) => assertClose(vector, mean(referenceStates(ids[i]!))));
  const spec = await resolveModel(folderOf("fixed-length", {}));
  assert.deepEqual(spec.input, { kind: "text", maxTokens: 12, prompts: {} });
});

test("the folder's default prompt goes before each text, and include_prompt leaves its tokens out of the pooling", async () => {
  const config = { prompts: { query: "the dog ", document: "" }, default_prompt_name: "query" };
  const files = { "config_sentence_transformers.json": config };
  const [first] = await vectorsOf("prompted", files);
  const states = referenceStates([2, 4, 8, 4, 5, 6, 11, 3]);
  assertClose(first!, mean(states));
  const without = { "1_Pooling/config.json": { pooling_mode: "mean", include_prompt: false } };
  const [other] = await vectorsOf("unpooled-prompt", { ...files, ...without });
  assertClose(other!, mean(states.slice(3)));
});

test("a folder in a cache of the hub is named as on the hub", () => {
  assert.equal(modelName("/cache/models--org--name/snapshots/0123abcd"), "org/name");
  assert.equal(modelName("models/name.onnx"), "name");
});

test("transformers 5 gives no token types without model_input_names, and neither do we", async () => {
  const scoreOf = async (name: string, tokenizerConfig: object): Promise<number> => {
    const files = { "model.onnx": tinyBert(1), "config.json": reranker, "tokenizer_config.json": tokenizerConfig };
    const [result] = await run(await resolveModel(folderOf(name, files)), [{ query: "the cat", text: "dog runs" }]);
    return result!.score;
  };
  const expected = sigmoid(logitsOf(referenceStates([2, 4, 5, 3, 8, 9, 10, 3]))[0]!);
  for (const [name, own] of Object.entries({
    backend: { tokenizer_class: "TokenizersBackend" },
    named: { tokenizer_class: "BertTokenizer", model_input_names: ["input_ids", "attention_mask"] },
  }))
    assert.ok(Math.abs((await scoreOf(name, own)) - expected) < 1e-5, name);
});
