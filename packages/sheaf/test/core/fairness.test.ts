import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "../../dist/index.js";

test("a synchronous batch function under callers that never pause leaves timers and I/O their turn", async () => {
  const batcher = createBatcher((items: number[]) => items, { maxBatchSize: 4, concurrency: 1, policy: greedy() });
  let timerFired = false;
  setTimeout(() => (timerFired = true), 1);
  let callsLeft = 3_000_000; // so that the test ends where the timer starves
  const caller = async (): Promise<void> => {
    while (!timerFired && callsLeft-- > 0) await batcher(1);
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  assert.ok(callsLeft > 0, "the timer fired while the callers were still calling");
  await batcher.close();
});
