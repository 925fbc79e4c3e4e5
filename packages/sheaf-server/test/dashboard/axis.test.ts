import assert from "node:assert/strict";
import { test } from "node:test";

// The page's own module, as the browser loads it.
const { shareSteps } = await import(new URL("../../src/dashboard/page/format.js", import.meta.url).href);

test("the axis of a histogram is the first even step that reaches its tallest bar", () => {
  for (const [largest, top] of [
    [0, 0.1],
    [0.1, 0.1],
    [0.44, 0.5],
    [0.61, 0.8],
    [1, 1],
  ] as const) {
    // prettier-ignore
    const steps = shareSteps(largest);
    assert.ok(Math.abs(steps.at(-1) - top) < 1e-9 && steps.at(-1) >= largest - 1e-9, `${largest}: ${steps.join(", ")}`);
    assert.ok(steps.length <= 6);
  }
});
