import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ranges } from "../../dist/cli/ranges.js";
import type { ModuleSpec, VectorRanges } from "../../dist/runners/contract/model-spec.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { running } from "../load/streams.js";
import { folderOf, tinyBert, width } from "./made-folders.js";

const bert = { architectures: ["BertModel"], hidden_size: width, max_position_embeddings: 16, pad_token_id: 0 };
const words = ["the", "cat", "sits", "dog", "run", "in"];
/** 108 different texts; each is cut or whole, long or short. */
const texts = Array.from({ length: 108 }, (_, i) =>
  `${words[i % 6]} ${words[Math.floor(i / 6) % 6]} `.repeat(1 + (i % 3)),
);

const run = running(ranges);

test("sheaf ranges writes what the folder then is served with: the extremes of each number at length 1", async () => {
  const config = { ...bert, matryoshka_dimensions: [2, width] };
  const folder = folderOf("measured", { "model.onnx": tinyBert(), "config.json": config });
  const sample = join(folder, "sample.txt");
  writeFileSync(sample, texts.join("\n\n"));
  const { code, out, err } = await run(folder, sample);
  assert.equal(code, 0, err);
  assert.match(out, /quantization_ranges\.json: the ranges of 4, 2 dimensions, from 108 texts\.\n$/);
  const found = JSON.parse(readFileSync(join(folder, "quantization_ranges.json"), "utf8")) as Record<
    string,
    VectorRanges
  >;
  assert.deepEqual(Object.keys(found), ["2", "4"]);
  for (const [length, { min, max }] of Object.entries(found)) {
    assert.deepEqual([min.length, max.length], [Number(length), Number(length)]);
    assert.ok(min.every((least, i) => least < max[i]! && least >= -1 && max[i]! <= 1));
  }
  // Of length 1, two numbers reach further than they do among four.
  assert.notDeepEqual(found["2"]!.max, found["4"]!.max.slice(0, 2));
  const { output } = (await resolveModel(folder)) as ModuleSpec;
  assert.deepEqual(output.kind === "vector" && output.ranges, found);
});

test("too few texts, a folder that embeds none, and a length that it does not give are refused", async () => {
  const folder = folderOf("few", { "model.onnx": tinyBert(), "config.json": bert });
  const sample = join(folder, "sample.txt");
  writeFileSync(sample, "the cat\ndog");
  const few = await run(folder, sample);
  assert.deepEqual([few.code, few.out], [1, ""]);
  assert.match(few.err, /sample\.txt has 2 texts; 100 or more show the range of a number\.\n$/);
  assert.match((await run(folder, sample, "--dimensions", "3")).err, /gives no vectors of 3 dimensions\.\n$/);
  assert.match((await run(folder, join(folder, "none.txt"))).err, /none\.txt cannot be read: ENOENT/);
});
