import assert from "node:assert/strict";
import { test } from "node:test";

// The page's own module, as the browser loads it.
const page = new URL("../../src/dashboard/page/", import.meta.url);
const { barOf, sizeBounds } = await import(`${page.href}history.js`);

test("every batch size has a bar, whose bound is the first that holds it; there are never more than 33", () => {
  for (const maxBatchSize of [1, 7, 32, 33, 100, 1000, 1025, 65_536, Infinity]) {
    const bounds = sizeBounds(maxBatchSize);
    assert.ok(bounds.length <= 33, `${maxBatchSize}: ${bounds.length} bars`);
    for (const size of [1, 2, 3, 31, 32, 33, 99, 100, 999, 1024, 1025, 65_536].filter((size) => size <= maxBatchSize)) {
      const bar = barOf(size, bounds);
      assert.ok(size <= bounds[bar]!, `${size} of ${maxBatchSize}`);
      if (bar > 0) assert.ok(size > bounds[bar - 1]!, `${size} of ${maxBatchSize}`);
    }
    if (maxBatchSize < Infinity) assert.equal(bounds.at(-1), maxBatchSize);
  }
});
