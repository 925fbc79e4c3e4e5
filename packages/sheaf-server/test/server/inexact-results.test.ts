import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { grpcServing } from "./grpc-serving.js";
import { measuringTexts, serving } from "./serving.js";

const values: Record<string, unknown> = {
  good: { a: [1, null, "x", -0.5, Float32Array.of(0.5), 9007199254740992n] },
  nan: [0, NaN],
  infinite: { deep: [{ a: -Infinity }] },
  array: Float32Array.of(1, Infinity),
  big: [12345678901234567890n],
  bigs: BigInt64Array.of(1n, 2n ** 53n + 1n),
  map: { scores: new Map([["a", 1]]) },
  half: ["\u{1f600}", "a\ud83d"],
};
const wrong: readonly [name: string, message: string][] = [
  ["nan", "The model's result at [1] is NaN, which JSON cannot say."],
  ["infinite", "The model's result at deep[0].a is -Infinity, which JSON cannot say."],
  ["array", "The model's result at [1] is Infinity, which JSON cannot say."],
  ["big", "The model's result at [0] is 12345678901234567890, which JSON's readers would round; give it as a text."],
  ["bigs", "The model's result at [1] is 9007199254740993, which JSON's readers would round; give it as a text."],
  ["map", "The model's result at scores is a Map, which JSON cannot say; give an object or an array."],
  ["half", "The model's result at [1] holds half of a surrogate pair."],
];
const shown = { a: [1, null, "x", -0.5, [0.5], 9007199254740992] };

const any: ModelDefinition = {
  name: "any",
  input: { kind: "json" },
  output: { kind: "json" },
  settings: { maxBatchSize: 8 },
  run: (names: string[]) => names.map((name) => values[name]),
};
/** A vector, or a score, of a text: NaN where it says so. */
const numberOf = (text: string): number => (text.includes("nan") ? NaN : text.includes("infinite") ? Infinity : 1);
const vectors: ModelDefinition = {
  ...measuringTexts(),
  run: (texts: string[]) =>
    texts.map((text) => ({ vector: Float32Array.of(1, numberOf(text)), tokens: 1, truncated: false })),
};
const scores: ModelDefinition = {
  name: "judge",
  task: "rerank",
  input: { kind: "text-pair", maxTokens: 9 },
  output: { kind: "score" },
  run: (pairs: { text: string }[]) =>
    pairs.map(({ text }) => ({ score: 0.5, logit: numberOf(text), tokens: 1, truncated: false })),
};
const tensors: ModelDefinition = {
  name: "tensors",
  input: { kind: "tensors", tensors: [{ name: "x", datatype: "INT64", shape: [1] }] },
  output: {
    kind: "tensors",
    tensors: [
      { name: "big", datatype: "INT64", shape: [1] },
      { name: "float", datatype: "FP32", shape: [1] },
      { name: "half", datatype: "FP16", shape: [1] },
    ],
  },
  run: (items: { x: BigInt64Array }[]) =>
    items.map(({ x }) => ({
      big: x[0] === 1n ? BigInt64Array.of(2n ** 53n + 1n) : x,
      float: Float32Array.of(x[0] === 2n ? -Infinity : 1),
      half: Uint16Array.of(x[0] === 3n ? 0x7e00 : 0x3c00),
    })),
};

test("a result that JSON would change fails its own item, which is told why; the others are answered", async (t) => {
  const server = await serving(t, [any]);
  for (const [name, message] of wrong) {
    const list = await server.post("/infer", { inputs: ["good", name, "good"] });
    assert.equal(list.status, 200);
    assert.deepEqual(list.json.outputs, [shown, { error: { code: "MODEL_ERROR", message } }, shown]);
    const [alone, beside] = await Promise.all([
      server.post("/infer", { input: name }),
      server.post("/infer", { input: "good" }),
    ]);
    assert.deepEqual([alone.status, alone.json.detail, alone.json.error.code], [500, message, "MODEL_ERROR"]);
    assert.deepEqual([beside.status, beside.json.output], [200, shown]);
    const body = { inputs: [{ name: "input", datatype: "BYTES", shape: [2], data: ['"good"', JSON.stringify(name)] }] };
    const v2 = await server.post("/v2/models/any/infer", body);
    assert.deepEqual([v2.status, v2.json.error], [500, `Input 1: ${message}`]);
  }
});

test("vectors and scores that are not finite fail a request whole, and name the input; nothing of them is kept", async (t) => {
  const server = await serving(t, [vectors, scores], { cacheMaxBytes: 1_000_000 });
  const message = /^Input 1: The model's result at (\[1\]|logit) is (NaN|Infinity), which JSON cannot say\.$/;
  for (const word of ["nan", "infinite"])
    for (const [path, body] of [
      ["/v1/embeddings", { model: "measure", input: ["good", word] }],
      ["/v1/embeddings", { model: "measure", input: ["good", word], encoding_format: "base64" }],
      ["/embed", { inputs: ["good", word] }],
      ["/rerank", { query: "q", texts: ["good", word], model: "judge" }],
      ["/v1/rerank", { query: "q", documents: ["good", word], model: "judge" }],
    ] as const)
      for (let i = 0; i < 2; i++) {
        const { status, json, text } = await server.post(path, body);
        assert.equal(status, 500, `${path} ${text}`);
        assert.match(json.error?.message ?? json.error ?? json.message, message, path);
      }
  const fine = await server.post("/v1/embeddings", { model: "measure", input: "good" });
  assert.deepEqual(fine.json.data[0].embedding, [1, 1]);
});

test("tensors fail where they become JSON, by name and element; their bytes hold every number", async (t) => {
  const server = await grpcServing(t, [tensors]);
  const faults = [
    [1, "big[0] is 9007199254740993, which JSON's readers would round"],
    [2, "float[0] is -Infinity, which JSON cannot say"],
    [3, "half[0] is NaN, which JSON cannot say"],
  ] as const;
  for (const [x, message] of faults) {
    const list = await server.post("/infer", { inputs: [{ x: [0] }, { x: [x] }] });
    assert.deepEqual(list.json.outputs[0], { big: [0], float: [1], half: [1] });
    assert.ok(list.json.outputs[1].error.message.includes(message), list.text);
    const inputs = [{ name: "x", datatype: "INT64", shape: [1, 1], data: [x] }];
    const v2 = await server.post("/v2/models/tensors/infer", { inputs });
    assert.equal(v2.status, 500);
    assert.ok(v2.json.error.includes(message), v2.text);
    const outputs = ["big", "float", "half"].map((name) => ({ name, parameters: { binary_data: true } }));
    const binary = await server.post("/v2/models/tensors/infer", { inputs, outputs });
    assert.equal(binary.status, 200, binary.text);
    const request = {
      model_name: "tensors",
      inputs: [{ name: "x", datatype: "INT64", shape: [1, 1], contents: { int64_contents: [x] } }],
    };
    const { status, reply } = await server.call("ModelInfer", request);
    assert.equal(status, "OK");
    const [big] = reply.raw_output_contents as Buffer[];
    assert.equal(big!.readBigInt64LE(), x === 1 ? 2n ** 53n + 1n : BigInt(x));
  }
});
