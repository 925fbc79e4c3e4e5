import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, createBatcher, greedy } from "../../dist/index.js";

/** A clock whose turns end when the test says so; `perRunMs` pass in each run of a synchronous batch function. */
function turnByTurn(perRunMs: number) {
  let nowMs = 0;
  let looks = 0;
  const turnEnds: (() => void)[] = [];
  const clock: Clock = {
    now: () => {
      looks++;
      return nowMs;
    },
    after: (delayMs, callback) => {
      if (delayMs === 0) turnEnds.push(callback);
      return () => undefined;
    },
  };
  const batches: number[][] = [];
  const batcher = createBatcher(
    (items: number[]) => {
      batches.push(items);
      nowMs += perRunMs;
      return items;
    },
    { clock, policy: greedy(), maxBatchSize: 2, concurrency: 1 },
  );
  const endTurn = async (): Promise<void> => {
    turnEnds.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { batcher, batches, endTurn, looks: () => looks };
}

const tenCalls = (batcher: (item: number) => Promise<number>): Promise<number>[] =>
  Array.from({ length: 10 }, (_, item) => batcher(item));

test("the calls of a burst share one look at the clock", () => {
  const { batcher, looks } = turnByTurn(0);
  const before = looks();
  for (const call of tenCalls(batcher)) call.catch(() => undefined);
  assert.equal(looks() - before, 1);
});

test("a full batch follows the one before at once, without another turn of the event loop", async () => {
  const { batcher, batches, endTurn } = turnByTurn(0);
  const calls = tenCalls(batcher);
  await endTurn();
  assert.equal(batches.length, 0, "the calls of a turn may share a batch: none goes before its end");
  await endTurn();
  assert.equal(batches.length, 5);
  assert.equal((await Promise.all(calls)).length, 10);
});

test("batches that follow each other give way to others after 10 ms in one turn", async () => {
  const { batcher, batches, endTurn } = turnByTurn(5);
  const calls = tenCalls(batcher);
  await endTurn();
  await endTurn();
  assert.equal(batches.length, 3);
  await endTurn();
  assert.equal(batches.length, 5);
  await Promise.all(calls);
});
