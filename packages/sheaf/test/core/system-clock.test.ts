import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../dist/core/runtime/runtime.js";

test("no delay of a fraction of a millisecond is cut short", async () => {
  const startMs = systemClock.now();
  await Promise.all(
    [0.9, 0.3, 0.6].map(
      (delayMs) =>
        new Promise<void>((resolve) => {
          systemClock.after(delayMs, () => {
            assert.ok(systemClock.now() >= startMs + delayMs, `${delayMs} ms`);
            resolve();
          });
        }),
    ),
  );
});

test("a delay of a fraction of a millisecond can be cancelled", async () => {
  const cancel = systemClock.after(0.5, () => assert.fail("cancelled"));
  cancel();
  await new Promise((resolve) => setTimeout(resolve, 3));
});
