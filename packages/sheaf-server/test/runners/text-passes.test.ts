// The passes of a text folder's worker: a real model, whose runs are counted.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createBatcher, greedy } from "sheaf";
import { PassCost } from "sheaf/models";
import { workerThread } from "sheaf/node";
import type { ModuleSpec } from "../../dist/runners/contract/model-spec.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import {
  loadTextModel,
  runTexts,
  warmUpTexts,
  type LoadedText,
  type TextData,
  type TextResult,
} from "../../dist/runners/text/model.js";
import { folderOf, tinyBert, width } from "./made-folders.js";
import { folder } from "./made-models.js";

after(() => rmSync(folder, { recursive: true, force: true }));

const path = folderOf("passes", {
  "model.onnx": tinyBert(),
  "config.json": { architectures: ["BertModel"], hidden_size: width, max_position_embeddings: 512, pad_token_id: 0 },
});
/** Of so many tokens, with the two at its ends. */
const textOf = (tokens: number): string => "the ".repeat(tokens - 2).trimEnd();
const texts = [400, 12, 14, 410, 13, 60].map(textOf);

/** The loaded model, with the shapes of its runs. */
async function opened(): Promise<{ model: LoadedText; shapes: string[]; spec: ModuleSpec }> {
  const spec = (await resolveModel(path)) as ModuleSpec;
  const model = await loadTextModel(spec.data as TextData);
  const shapes: string[] = [];
  const { session } = model;
  const run = session.run.bind(session);
  session.run = (feeds, fetches) => {
    shapes.push(feeds["input_ids"]!.dims.join(" × "));
    return run(feeds, fetches);
  };
  return { model, shapes, spec };
}

/** A cost that has seen these times, many times. */
function taught(msOf: (size: number, length: number) => number): PassCost {
  const cost = new PassCost();
  for (let round = 0; round < 20; round++)
    for (const size of [1, 2, 3, 4, 6])
      for (const length of [12, 14, 60, 128, 256, 400, 410]) cost.learn(size, length, msOf(size, length));
  return cost;
}

test("the worker's passes follow the cost that it has learned", async () => {
  const { model, shapes } = await opened();
  const ran = async (cost: PassCost): Promise<string[]> => {
    shapes.length = 0;
    await runTexts(texts, { ...model, cost });
    return [...shapes];
  };
  // Long texts are slower together.
  const crowded = taught((size, length) => 2 + 0.1 * size * length + 0.1 * Math.max(0, size * length - 500));
  assert.deepEqual(await ran(crowded), ["3 × 14", "1 × 60", "1 × 400", "1 × 410"]);
  // A fixed part of 30 ms is worth some padding.
  assert.deepEqual(await ran(taught((size, length) => 30 + 0.1 * size * length)), ["4 × 60", "2 × 410"]);
  // With nothing to share, there is hardly any padding.
  await ran(taught((size, length) => 0.2 * size * length));
  const padded = shapes.reduce((sum, shape) => sum + shape.split(" × ").reduce((size, n) => size * Number(n), 1), 0);
  assert.ok(padded < 1.03 * (400 + 12 + 14 + 410 + 13 + 60), shapes.join(", "));
  await model.session.release();
});

test("each pass that it runs teaches it, and so does its warm-up", async () => {
  const { model } = await opened();
  const learned: string[] = [];
  const cost = {
    of: () => 1,
    learn: (size: number, length: number, ms: number) => {
      assert.ok(ms > 0);
      learned.push(`${size} × ${length}`);
    },
  };
  await warmUpTexts({ ...model, cost });
  assert.equal(learned[0], "1 × 16");
  learned.length = 0;
  // With all passes at one price, one is cheapest.
  await runTexts(texts, { ...model, cost });
  assert.deepEqual(learned, ["6 × 410"]);
  await model.session.release();
});

test("texts are answered pass by pass, short ones first, and are the same as alone", async () => {
  const { model, spec } = await opened();
  const cost = taught((size, length) => 2 + 0.1 * size * length + 0.1 * Math.max(0, size * length - 500));
  const answered: number[] = [];
  const results: TextResult[] = [];
  const answer = (index: number, result: unknown): void => {
    answered.push(index);
    results[index] = result as TextResult;
  };
  const last = await runTexts(texts, { ...model, cost }, { answer });
  assert.deepEqual(answered, [1, 2, 4, 5, 0]);
  assert.equal(last.length, texts.length);
  results[3] = last[3] as TextResult;
  await model.session.release();

  const infer = createBatcher<string, TextResult>(
    workerThread<string, TextResult>(spec.workerUrl, { data: spec.data }),
    { policy: greedy(), maxBatchSize: 8 },
  );
  const together = await infer.many(texts);
  for (const [index, text] of texts.entries()) {
    const alone = await infer(text);
    for (const result of [results[index]!, together[index]!]) {
      assert.deepEqual([result.tokens, result.truncated], [alone.tokens, false]);
      alone.vector!.forEach((value, i) => assert.ok(Math.abs(value - result.vector![i]!) < 1e-5));
    }
  }
  await infer.close();
});

test("a text folder's worker keeps short texts apart from long ones, and its batches weigh their sum", async () => {
  const { spec, model } = await opened();
  await model.session.release();
  assert.deepEqual([spec.batchWeight, spec.maxBatchWeight], ["apart", 4096]);
});
