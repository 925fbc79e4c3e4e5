import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { createBatcher, type Batcher } from "../../dist/index.js";
import { exposition, prometheusMetrics } from "../../dist/metrics/index.js";

const doubling = (name: string): Batcher<number, number> =>
  createBatcher((numbers: number[]) => numbers.map((number) => 2 * number), { name });

test("counts items and batches at scrape time, without an observation per item", async () => {
  const batcher = doubling("double");
  const metrics = prometheusMetrics([batcher]);
  await batcher.many([1, 2, 3]);
  const lines = metrics.text().split("\n");
  for (const line of [
    "# TYPE sheaf_items_total counter",
    'sheaf_items_total{batcher="double",outcome="ok"} 3',
    "# TYPE sheaf_batch_size_items histogram",
    'sheaf_batch_size_items_bucket{batcher="double",le="2"} 0',
    'sheaf_batch_size_items_bucket{batcher="double",le="4"} 1',
    'sheaf_batch_size_items_bucket{batcher="double",le="+Inf"} 1',
    'sheaf_batch_size_items_sum{batcher="double"} 3',
    'sheaf_queue_wait_seconds_count{batcher="double"} 3',
    'sheaf_run_seconds_count{batcher="double"} 1',
  ])
    assert.ok(lines.includes(line), line);
});

test("a prom-client registry shows the same samples beside its own metrics", async () => {
  const batcher = doubling("double");
  const metrics = prometheusMetrics([batcher]);
  const registry = new Registry();
  metrics.register(registry);
  await batcher.many([1, 2, 3]);
  const shown = await registry.metrics();
  const samples = (text: string): string[] =>
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .sort();
  assert.deepEqual(samples(shown), samples(metrics.text()));
  assert.match(shown, /^# TYPE sheaf_batch_size_items histogram$/m);
});

test("close ends the subscriptions", async () => {
  const batcher = doubling("double");
  const metrics = prometheusMetrics([batcher]);
  metrics.close();
  await batcher(1);
  assert.match(metrics.text(), /^sheaf_batch_size_items_count\{batcher="double"\} 0$/m);
});

test("two batchers of one name are refused: their series would be one", () => {
  assert.throws(() => prometheusMetrics([doubling("a"), doubling("a")]), /Two batchers are named "a"/);
});

test("label values are escaped, and infinity is written as Prometheus reads it", () => {
  const labels = { path: 'a"b\\c\nd' };
  const text = exposition([{ name: "x", help: "An x.", type: "gauge", samples: [{ labels, value: Infinity }] }]);
  assert.equal(text, '# HELP x An x.\n# TYPE x gauge\nx{path="a\\"b\\\\c\\nd"} +Inf\n');
});
