import assert from "node:assert/strict";
import { test } from "node:test";
import { batchesBetween, batchSizeReading } from "../../dist/load/http/server-metrics.js";

const page = (one: number, two: number, sum: number): string => `# HELP sheaf_batch_size_items Items in a batch.
# TYPE sheaf_batch_size_items histogram
sheaf_batch_size_items_bucket{batcher="a",le="1"} ${one}
sheaf_batch_size_items_bucket{batcher="a",le="2"} ${one + two}
sheaf_batch_size_items_bucket{batcher="a",le="+Inf"} ${one + two}
sheaf_batch_size_items_sum{batcher="a"} ${sum}
sheaf_batch_size_items_count{batcher="a"} ${one + two}
sheaf_batch_size_items_bucket{le="1",batcher="b"} 1
sheaf_batch_size_items_bucket{le="2",batcher="b"} 1
sheaf_batch_size_items_bucket{le="+Inf",batcher="b"} 2
sheaf_batch_size_items_sum{batcher="b"} 9
`;

test("batches by size are the difference of two readings, over all batchers", () => {
  const before = batchSizeReading(page(1, 0, 1));
  const after = batchSizeReading(page(3, 4, 11))!;
  assert.deepEqual(batchesBetween(before, after), {
    meanSize: 10 / 6,
    sizes: [
      { upTo: 1, batches: 2 },
      { upTo: 2, batches: 4 },
      { upTo: null, batches: 0 },
    ],
  });
  assert.equal(batchesBetween(undefined, after).sizes[0]!.batches, 4);
});

test("a page without the histogram has no reading", () => {
  assert.equal(batchSizeReading("process_cpu_seconds_total 3\n"), undefined);
});
