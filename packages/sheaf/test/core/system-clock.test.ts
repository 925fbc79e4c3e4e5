import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../dist/core/clock.js";

test("no delay is cut short, and delays of a fraction of a millisecond keep their order", async () => {
  const order: number[] = [];
  const startMs = systemClock.now();
  await Promise.all(
    [0.9, 0.3, 0.6].map(
      (delayMs) =>
        new Promise<void>((resolve) => {
          systemClock.after(delayMs, () => {
            assert.ok(systemClock.now() >= startMs + delayMs, `${delayMs} ms`);
            order.push(delayMs);
            resolve();
          });
        }),
    ),
  );
  assert.equal(order[0], 0.3);
});

test("a delay of a fraction of a millisecond can be cancelled between two looks", async () => {
  const cancel = systemClock.after(0.5, () => assert.fail("cancelled"));
  await new Promise((resolve) => setImmediate(resolve));
  cancel();
  await new Promise((resolve) => setTimeout(resolve, 3));
});
