import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "../../dist/index.js";
import { PassCost, runInPasses } from "../../dist/models/index.js";
import { manualClock } from "../../dist/testing/index.js";

const lengthsOf = (texts: readonly string[]): number[] => texts.map((text) => text.length);

/** A cost that has seen a fixed part of 20 positions. */
function learned(): PassCost {
  const cost = new PassCost();
  for (let i = 0; i < 20; i++)
    for (const [size, length] of [
      [1, 5],
      [4, 5],
      [1, 500],
      [2, 500],
    ] as const)
      cost.learn(size, length, 2 + 0.1 * size * length);
  return cost;
}

const [short, middle, long] = ["a", "b", "c"].map((letter, i) => letter.repeat([5, 60, 500][i]!)) as [
  string,
  string,
  string,
];

test("items of like length run together, and results come in the order of the items", async () => {
  const passes: string[][] = [];
  const items = [long, short, middle, short, long.toUpperCase()];
  const results = await runInPasses(items, {
    lengths: lengthsOf(items),
    cost: learned(),
    run: (pass) => {
      passes.push(pass.map((text) => text[0]!));
      return pass.map((text) => text[0]!);
    },
  });
  assert.deepEqual(passes.slice(0, 2), [["a", "a"], ["b"]]);
  assert.deepEqual(passes.slice(2).flat(), ["c", "C"]);
  assert.deepEqual(results, ["c", "a", "b", "a", "C"]);
});

test("short items are answered before the long ones of their batch run, and each once", async () => {
  const clock = manualClock();
  const answeredAtMs = new Map<string, number>();
  const cost = learned();
  const call = createBatcher<string, string>(
    (texts, { answer }) =>
      runInPasses(texts, {
        lengths: lengthsOf(texts),
        cost,
        answer,
        clock,
        run: async (pass) => {
          clock.advance(cost.of(pass.length, Math.max(...lengthsOf(pass))));
          // The callers of the pass before have their answers by now.
          await new Promise((resolve) => setImmediate(resolve));
          return pass.map((text) => text[0]!);
        },
      }),
    { policy: greedy(), concurrency: 1 },
  );
  const texts = [long, short, middle];
  const startedAtMs = clock.now();
  const results = await Promise.all(
    texts.map(async (text) => {
      const result = await call(text);
      answeredAtMs.set(result, clock.now() - startedAtMs);
      return result;
    }),
  );
  assert.deepEqual(results, ["c", "a", "b"]);
  assert.deepEqual([...answeredAtMs.keys()], ["a", "b", "c"]);
  // The short one does not wait for the 50 ms of the long one.
  assert.ok(answeredAtMs.get("a")! < 20 && answeredAtMs.get("c")! > 50, JSON.stringify([...answeredAtMs]));
  assert.deepEqual([call.stats().batches, call.stats().items.ok], [1, 3]);
});

test("an error of a pass reaches its items and those after it, not those before", async () => {
  const cost = learned();
  const call = createBatcher<string, string>(
    (texts, { answer }) =>
      runInPasses(texts, {
        lengths: lengthsOf(texts),
        cost,
        answer,
        run: (pass) => {
          if (pass.includes(middle)) throw new Error("no memory");
          return pass;
        },
      }),
    { policy: greedy() },
  );
  const outcomes = await call.settle([long, short, middle]);
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === "rejected" ? (outcome.reason as Error).message : outcome.value)),
    ["no memory", short, "no memory"],
  );
});

test("no pass begins once every caller has left", async () => {
  const cost = learned();
  const passes: string[][] = [];
  const controller = new AbortController();
  let run: Promise<unknown> | undefined;
  const call = createBatcher<string, string>(
    (texts, { answer, signal }) => {
      const ran = runInPasses(texts, {
        lengths: lengthsOf(texts),
        cost,
        answer,
        signal,
        run: async (pass) => {
          passes.push(pass);
          await new Promise((resolve) => setImmediate(resolve));
          if (pass[0] === middle) controller.abort(new Error("gone"));
          return pass;
        },
      });
      run = ran;
      return ran;
    },
    { policy: greedy() },
  );
  const gone = Promise.allSettled([long, middle].map((text) => call(text, { signal: controller.signal })));
  assert.equal(await call(short), short);
  for (const { status } of await gone) assert.equal(status, "rejected");
  await assert.rejects(run!, { code: "CLOSED" });
  assert.deepEqual(passes, [[short], [middle]]);
});

test("an Error in the place of an item stays there", async () => {
  const bad = new RangeError("bad");
  const results = await runInPasses(["a", "b"], { lengths: [5, 5], cost: new PassCost(), run: () => [bad, "b"] });
  assert.deepEqual(results, [bad, "b"]);
});

test("a pass with too few results, and lengths that are not the items', are refused", async () => {
  const cost = new PassCost();
  await assert.rejects(runInPasses(["a", "b"], { lengths: [1, 1], cost, run: () => ["a"] }), { code: "RESULT_COUNT" });
  await assert.rejects(
    runInPasses(["a", "b"], { lengths: [1], cost, run: (pass) => pass }),
    new RangeError("lengths must have one number for each of 2 items, got 1"),
  );
  assert.deepEqual(await runInPasses([], { lengths: [], cost, run: (pass: string[]) => pass }), []);
});

test("the time of each pass teaches its cost", async () => {
  const clock = manualClock();
  const cost = new PassCost();
  await runInPasses(["abcdefgh"], {
    lengths: [8],
    cost,
    clock,
    run: (pass) => {
      clock.advance(123);
      return pass;
    },
  });
  assert.ok(Math.abs(cost.of(1, 8) - 123) < 1);
});
