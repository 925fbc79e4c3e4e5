import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Looks until it is true, every 10 ms for five minutes at most: a busy machine is not a failure. */
export async function untilTrue(check) {
  for (const deadlineMs = performance.now() + 300_000; !(await check()); await sleep(10)) {
    assert.ok(performance.now() < deadlineMs, `not true within five minutes: ${check}`);
  }
}
