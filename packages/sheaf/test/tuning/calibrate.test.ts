import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunHandle } from "../../dist/executors.js";
import { virtualClock } from "../../dist/testing/index.js";
import { calibrate } from "../../dist/tuning/index.js";

/** A batch function that takes what `costMs` says, on a clock that jumps. */
function sleeper(costMs: (size: number, run: number) => number) {
  const clock = virtualClock();
  const sizes: number[] = [];
  let inFlight = 0;
  let maxInFlight = 0;
  const run = async (items: number[]): Promise<number[]> => {
    sizes.push(items.length);
    maxInFlight = Math.max(maxInFlight, ++inFlight);
    await clock.sleep(costMs(items.length, sizes.length));
    inFlight--;
    return items;
  };
  return { clock, run, sizes, maxInFlight: () => maxInFlight };
}
const sample = (index: number): number => index;

test("10 + 0.3 n ms is found within 5 %, also where one run in ten takes three times as long", async () => {
  const noisy = sleeper((size, run) => (10 + 0.3 * size) * (run % 10 === 3 ? 3 : 1 + 0.02 * Math.sin(run)));
  const { costModel, errorRate, rows } = await calibrate(noisy.run, { sample, clock: noisy.clock });
  assert.ok(Math.abs(costModel.fixedMs / 10 - 1) < 0.05, `fixed ${costModel.fixedMs}`);
  assert.ok(Math.abs(costModel.perItemMs / 0.3 - 1) < 0.05, `per item ${costModel.perItemMs}`);
  assert.ok(costModel.r2 > 0.98);
  assert.ok(errorRate <= 0.02, `the stated error is reached: ${errorRate}`);
  assert.deepEqual(
    rows.map(({ size }) => size),
    [1, 2, 4, 8, 16, 32],
  );
});

test("`sample` and `onProgress` see no `this` of ours", async () => {
  const { run, clock } = sleeper(() => 1);
  const seen = new Set<unknown>();
  await calibrate(run, {
    clock,
    sample: function (this: unknown, index: number) {
      seen.add(this);
      return index;
    },
    onProgress: function (this: unknown) {
      seen.add(this);
    },
  });
  assert.deepEqual([...seen], [undefined]);
});

test("a staircase keeps its table beside the line, and says where items a second stop rising", async () => {
  const stairs = sleeper((size) => (size <= 8 ? 4 : size));
  const { costModel, kneeSize } = await calibrate(stairs.run, { sample, clock: stairs.clock });
  assert.deepEqual(costModel.table, [
    [1, 4, 0],
    [2, 4, 0],
    [4, 4, 0],
    [8, 4, 0],
    [16, 16, 0],
    [32, 32, 0],
  ]);
  assert.equal(kneeSize, 8);
  assert.ok(costModel.r2 < 0.95);
});

test("sizes are interleaved: no size waits for another to be done with, and none always follows the same one", async () => {
  const { run, clock, sizes } = sleeper((size) => size);
  const options = { sample, clock, sizes: [1, 2, 4], warmUpRounds: 1, minRounds: 6, maxRounds: 6, targetError: 1e-9 };
  await calibrate(run, options);
  assert.equal(sizes.length, 3 * 7);
  for (let round = 0; round < 7; round++) {
    assert.deepEqual(new Set(sizes.slice(3 * round, 3 * round + 3)), new Set([1, 2, 4]));
  }
  const before4 = sizes.flatMap((size, i) => (size === 4 && i > 0 ? [sizes[i - 1]] : []));
  assert.ok(new Set(before4).size > 1);
});

test("concurrency 1 to W is measured side by side: a device that serves one run at a time gains no slot", async () => {
  const clock = virtualClock();
  let freeAtMs = 0;
  const oneAtATime = {
    slots: 2,
    ready: async () => undefined,
    close: async () => undefined,
    run: async (items: number[]) => {
      freeAtMs = Math.max(freeAtMs, clock.now()) + 5;
      await clock.sleep(freeAtMs - clock.now());
      return items;
    },
  };
  const serial = await calibrate(oneAtATime, { sample, clock, sizes: [1, 8] });
  assert.deepEqual(
    serial.rows.map(({ concurrency }) => concurrency),
    [1, 1, 2, 2],
  );
  assert.equal(serial.slots, 1);

  const { run, clock: free, maxInFlight } = sleeper(() => 5);
  const parallel = await calibrate(run, { sample, clock: free, sizes: [1, 8], concurrency: [1, 2, 4] });
  assert.equal(parallel.slots, 4);
  assert.equal(maxInFlight(), 4);
  assert.equal(parallel.rows.at(-1)!.itemsPerS, (1000 * 4 * 8) / 5);
});

test("it ends after maxMs although the error is not reached, and says the error", async () => {
  const { run, clock } = sleeper((_, count) => 10 + 40 * (count % 3));
  const result = await calibrate(run, { sample, clock, maxMs: 3000 });
  assert.ok(clock.now() < 5000);
  assert.ok(result.errorRate > 0.02);
  assert.ok(result.rounds >= 7);
});

test("the run time an executor measured itself counts", async () => {
  const clock = virtualClock();
  const { costModel } = await calibrate(
    {
      slots: 1,
      ready: () => Promise.resolve(),
      close: () => Promise.resolve(),
      run: async (items: number[], handle: RunHandle) => {
        await clock.sleep(100);
        handle.measured(2 + items.length);
        return items;
      },
    },
    { sample, clock },
  );
  assert.ok(Math.abs(costModel.fixedMs - 2) < 1e-9);
  assert.ok(Math.abs(costModel.perItemMs - 1) < 1e-9);
});

test("a failing run, a failing item and a wrong count each end it with their own error", async () => {
  const clock = virtualClock();
  const boom = new Error("boom");
  await assert.rejects(
    calibrate(async () => Promise.reject(boom), { sample, clock }),
    boom,
  );
  await assert.rejects(
    calibrate(async (items: number[]) => items.map(() => boom), { sample, clock }),
    boom,
  );
  await assert.rejects(
    calibrate(async () => [1, 2, 3], { sample, clock, sizes: [2] }),
    /returned 3 results for 2 items/,
  );
  await assert.rejects(calibrate((async () => null) as never, { sample, clock }), /got null/);
});

test("aborting ends it with the reason and aborts the run in progress", async () => {
  const { run, clock } = sleeper(() => 1);
  const controller = new AbortController();
  let aborted = 0;
  const calibration = calibrate(
    async (items: number[], { signal, batchId }) => {
      signal.addEventListener("abort", () => aborted++);
      if (batchId === 3) controller.abort(new Error("enough"));
      return run(items);
    },
    { sample, clock, signal: controller.signal },
  );
  await assert.rejects(calibration, /enough/);
  assert.equal(aborted, 3);
});

test("options out of range are refused with what they were", async () => {
  const run = (items: number[]) => items;
  const refused = (options: object, message: RegExp) => assert.rejects(calibrate(run, { sample, ...options }), message);
  await refused({ minRound: 1 }, /unknown option minRound; did you mean minRounds\?/);
  await refused({ sample: 3 }, /sample must be a function \(index\) => item, got 3/);
  await refused({ sizes: [0] }, /sizes\[0\] must be an integer >= 1, got 0/);
  await refused({ concurrency: [] }, /concurrency must be a list of integers >= 1, got an array of 0/);
  await refused({ minRounds: 5, maxRounds: 4 }, /maxRounds must be an integer >= 5, got 4/);
  await refused({ targetError: 0 }, /targetError must be a number > 0, got 0/);
});
