// Vectors in small integers, as the clients of Cohere, Jina, Voyage and Mistral ask for them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { ModelDefinition } from "../../../dist/index.js";
import { quantized, quantizedTypes, type QuantizedType } from "../../../dist/server/codec/quantize.js";
import { serving } from "../serving.js";

interface Reference extends Readonly<Record<QuantizedType | "vectors", readonly number[][]>> {
  readonly min: number[];
  readonly max: number[];
}
/** Vectors of length 1, ranges, and what quantize_embeddings of sentence-transformers 6.2.0 makes of them. */
const reference = JSON.parse(
  readFileSync(new URL("../../../test/fixtures/quantized.json", import.meta.url), "utf8"),
) as Reference;

test("each type is what sentence-transformers makes, also outside the ranges and where a range is empty", () => {
  for (const type of quantizedTypes)
    for (const [i, vector] of reference.vectors.entries())
      assert.deepEqual(Array.from(quantized(Float32Array.from(vector), type, reference)), reference[type][i], type);
});

test("a bit too few for a byte is 0", () => {
  const vector = Float32Array.of(1, -1, 0, 1, 1, -1, 1, -1, 0.5, 2);
  assert.deepEqual(Array.from(quantized(vector, "ubinary", undefined)), [0b10011010, 0b11000000]);
});

/** Its vector has length 5. */
const model: ModelDefinition = {
  name: "embed",
  input: { kind: "text" },
  output: {
    kind: "vector",
    length: 4,
    dimensions: [2],
    ranges: { 4: { min: [-1, -1, -1, -1], max: [1, 1, 1, 1] } },
  },
  run: (texts: string[]) => texts.map(() => ({ vector: Float32Array.of(3, -4, 0, 0), tokens: 1, truncated: false })),
};
const without: ModelDefinition = { ...model, name: "without", output: { kind: "vector", length: 4 } };
/** (0.6, -0.8, 0, 0) in steps of 2 / 255 from -1. */
const uint8 = [203, 25, 127, 127];
const ubinary = [0b10000000];
const lower = (bytes: readonly number[]): number[] => bytes.map((byte) => byte - 128);

test("/v1/embeddings: output_dtype of Voyage and Mistral, embedding_type of Jina, and base64 of the bytes", async (t) => {
  const { post: ask } = await serving(t, [model, without]);
  const embeddingOf = async (fields: object): Promise<unknown> => {
    const { status, json } = await ask("/v1/embeddings", { model: "embed", input: "a", ...fields });
    assert.equal(status, 200, JSON.stringify(json));
    return json.data[0].embedding;
  };
  assert.deepEqual(await embeddingOf({ output_dtype: "uint8" }), uint8);
  assert.deepEqual(await embeddingOf({ output_dtype: "int8" }), lower(uint8));
  assert.deepEqual(await embeddingOf({ output_dtype: "ubinary" }), ubinary);
  assert.deepEqual(await embeddingOf({ embedding_type: "binary" }), lower(ubinary));
  assert.deepEqual(await embeddingOf({ output_dtype: "float" }), [3, -4, 0, 0]);
  const base64 = Buffer.from(uint8).toString("base64");
  assert.equal(await embeddingOf({ output_dtype: "uint8", encoding_format: "base64" }), base64);
  // Shortened first: (0.6, -0.8).
  assert.deepEqual(await embeddingOf({ output_dimension: 2, output_dtype: "ubinary" }), ubinary);
});

test("requests of voyageai 0.5 and mistralai 3.7 are taken, and replies have what they read", async (t) => {
  const { post: ask } = await serving(t, [model]);
  const voyage = { model: "embed", input: ["a"], input_type: "document", truncation: true, output_dtype: "int8" };
  const mistral = { model: "embed", input: ["a"], output_dimension: 4, output_dtype: "int8", encoding_format: "float" };
  for (const body of [voyage, mistral]) {
    const { status, json } = await ask("/v1/embeddings", body);
    assert.deepEqual([status, json.data[0].embedding, typeof json.id], [200, lower(uint8), "string"]);
  }
  const { status, json } = await ask("/v1/embeddings", { ...voyage, truncate: false });
  assert.deepEqual([status, json.error.param], [422, "truncation"]);
});

test("/v1/embed and /v2/embed give each of Cohere's embedding_types", async (t) => {
  const { post: ask } = await serving(t, [model, without]);
  for (const version of [1, 2]) {
    const embedding_types = ["float", "int8", "uint8", "binary", "ubinary"];
    const { json } = await ask(`/v${version}/embed`, { model: "embed", texts: ["a"], embedding_types });
    assert.deepEqual(json.embeddings, {
      float: [[3, -4, 0, 0]],
      int8: [lower(uint8)],
      uint8: [uint8],
      binary: [lower(ubinary)],
      ubinary: [ubinary],
    });
  }
});

test("int8 and uint8 are refused without ranges of that length, and contradictions are named", async (t) => {
  const { post: ask } = await serving(t, [model, without]);
  const refused = async (path: string, body: object): Promise<string> => {
    const { status, json } = await ask(path, { model: "embed", ...body });
    assert.equal(status, 422);
    return json.error?.message ?? json.message;
  };
  const input = "a";
  const noRanges = (path: string, name: string, type: string, length: number) =>
    `${path}: ${name} gives no ${type}, because its folder has no quantization_ranges.json for ${length} dimensions; ` +
    '"sheaf ranges" makes it from a sample of texts. Ranges of the texts at hand would make a vector depend on its neighbours.';
  assert.equal(
    await refused("/v1/embeddings", { model: "without", input, output_dtype: "int8" }),
    noRanges("output_dtype", "without", "int8", 4),
  );
  assert.equal(
    await refused("/v1/embeddings", { input, embedding_type: "uint8", dimensions: 2 }),
    noRanges("embedding_type", "embed", "uint8", 2),
  );
  assert.equal(
    await refused("/v2/embed", { model: "without", texts: ["a"], embedding_types: ["binary", "uint8"] }),
    noRanges("embedding_types", "without", "uint8", 4),
  );
  assert.match(
    await refused("/v1/embeddings", { input, embedding_type: "int8", output_dtype: "uint8" }),
    /^output_dtype must be "int8", as embedding_type is/,
  );
  assert.match(
    await refused("/v1/embeddings", { input, dimensions: 4, output_dimension: 2 }),
    /^output_dimension must be 4, as dimensions is/,
  );
});
