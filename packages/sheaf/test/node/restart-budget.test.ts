import assert from "node:assert/strict";
import { test } from "node:test";
import { RestartBudget } from "../../dist/node/pool/restart-budget.js";
import { manualClock } from "../../dist/tuning/index.js";

test("restarts wait 100 ms, doubling; the sixth crash in 60 s is one too many, and crashes are forgotten after that", () => {
  const clock = manualClock();
  const budget = new RestartBudget(clock);
  assert.deepEqual(
    Array.from({ length: 5 }, () => budget.crashed()),
    [100, 200, 400, 800, 1600],
  );
  assert.equal(budget.crashed(), undefined);
  clock.advance(60_000);
  assert.equal(budget.crashed(), 100);
});
