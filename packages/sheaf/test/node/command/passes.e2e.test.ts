// The helpers of sheaf_worker for items of different lengths, in a real Python worker.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createBatcher } from "../../../dist/index.js";
import { PassCost, planPasses } from "../../../dist/models/index.js";
import { workerCommand } from "../../../dist/node/index.js";
import { seededRandom } from "../../../dist/internal/tuning.js";
import { skipWithoutPython } from "./setup.js";

const worker = (code: string): Parameters<typeof workerCommand>[0] => ({
  command: "python3",
  args: ["-c", code],
  log: () => undefined,
});

const planner = `
from sheaf_worker import PassCost, plan_passes, serve

def run(questions):
    answers = []
    for question in questions:
        cost = PassCost()
        for size, length, ms in question["passes"]:
            cost.learn(size, length, ms)
        answers.append({
            "expected": [cost.of(size, length) for size, length, _ in question["passes"]],
            "plan": plan_passes(question["lengths"], cost, question["most"]),
        })
    return answers

serve(run)
`;

const embedder = `
import time
from sheaf_worker import PassCost, run_in_passes, serve

passes = []

def load(data):
    cost = PassCost()
    for size, length in [(1, 5), (4, 5), (1, 500), (2, 500)] * 20:
        cost.learn(size, length, 2 + 0.1 * size * length)
    return cost

def embed(texts, context):
    passes.append([text[0] for text in texts])
    while texts[0][0] == "e" and not context.cancelled:
        time.sleep(0.001)
    return texts[1:] if "x" in texts else [text.upper() for text in texts]

def run(texts, cost, context):
    if texts == ["passes"]:
        return ["|".join("".join(part) for part in passes)]
    lengths = [len(text) for text in texts]
    return run_in_passes(texts, lengths, lambda part: embed(part, context), cost, context=context)

serve(run, load=load, inputs="text", outputs="text")
`;

describe("passes of a Python worker", { skip: skipWithoutPython, timeout: 120_000 }, () => {
  test("they are cut as those of a worker in JavaScript that has learned from the same passes", async () => {
    const call = createBatcher<unknown, { expected: number[]; plan: number[][] }>(workerCommand(worker(planner)));
    for (let seed = 1; seed <= 10; seed++) {
      const random = seededRandom(seed);
      const passes = Array.from({ length: 40 }, () => {
        const [size, length] = [Math.ceil(16 * random()), Math.ceil(8 * 64 ** random())] as const;
        return [size, length, (2 + 0.1 * size * length) * (0.5 + random())] as const;
      });
      const lengths = Array.from({ length: 40 }, () => Math.ceil(8 * 64 ** random()));
      const cost = new PassCost();
      for (const [size, length, ms] of passes) cost.learn(size, length, ms);
      const { expected, plan } = await call({ passes, lengths, most: 2000 });
      assert.deepEqual(plan, planPasses(lengths, cost, { maxPaddedLength: 2000 }), `seed ${seed}`);
      passes.forEach(([size, length], i) => {
        const here = cost.of(size, length);
        assert.ok(Math.abs(expected[i]! - here) < 1e-9 * here, `seed ${seed}: ${expected[i]} and ${here} ms`);
      });
    }
  });

  test("texts of like length share a pass, results keep the order, and a wrong count fails the batch", async () => {
    const call = createBatcher<string, string>(workerCommand(worker(embedder)), { maxBatchSize: 8 });
    const texts = ["c".repeat(500), "aaaaa", "b".repeat(60), "ddddd"];
    assert.deepEqual(
      await call.many(texts),
      texts.map((text) => text.toUpperCase()),
    );
    assert.equal(await call("passes"), "ad|b|c");
    await assert.rejects(call("x"), /a pass returned 0 results for 1 items/);
  });

  test("callers have their results at the end of their pass, and no pass begins once all have left", async () => {
    const call = createBatcher<string, string>(workerCommand(worker(embedder)), { maxBatchSize: 8 });
    const controller = new AbortController();
    // The pass of the second runs until its batch is cancelled.
    const gone = ["c".repeat(500), "e".repeat(60)].map((text) => call(text, { signal: controller.signal }));
    const outcomes = Promise.allSettled(gone);
    assert.equal(await call("aaaaa"), "AAAAA");
    controller.abort();
    for (const { status } of await outcomes) assert.equal(status, "rejected");
    // Whether the second pass had begun by then is chance.
    assert.match(await call("passes"), /^a(\|e)?$/);
  });
});
