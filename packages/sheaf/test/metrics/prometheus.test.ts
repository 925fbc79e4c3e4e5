import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { createBatcher, createRateLimit, greedy, type BatchContext, type Batcher } from "../../dist/index.js";
import { prometheusMetrics } from "../../dist/metrics/index.js";
import { exposition } from "../../dist/internal/metrics.js";
import { manualClock } from "../../dist/testing/index.js";

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

test("lanes have figures of their own once both have come, and their counts never go back", async () => {
  const clock = manualClock();
  let refuse: (() => void) | undefined;
  const batcher = createBatcher(
    async (numbers: number[], context) => {
      if (numbers[0] === 0 || refuse !== undefined) return numbers;
      await new Promise<void>((resolve) => (refuse = resolve));
      context.putBack();
      throw Object.assign(new Error("429"), { retryAfterMs: 2000 });
    },
    { name: "lanes", clock, policy: greedy(), maxBatchSize: 2, concurrency: 1 },
  );
  const metrics = prometheusMetrics([batcher]);
  const lines = (): string[] => metrics.text().split("\n");
  const first = batcher(0);
  await clock.settle();
  await first;
  assert.ok(!lines().some((line) => /_lane_|_bulk_/.test(line)));
  const calls = batcher.many([1, 2, 3], { priority: "bulk" });
  await clock.settle();
  const two = 'sheaf_lane_items_total{batcher="lanes",lane="bulk",outcome="dispatched"} 2';
  assert.ok(lines().includes(two));
  refuse!();
  await clock.advanceAsync(1000);
  for (const line of [
    two,
    'sheaf_lane_items_total{batcher="lanes",lane="live",outcome="dispatched"} 1',
    'sheaf_lane_items_total{batcher="lanes",lane="bulk",outcome="rejected"} 0',
    'sheaf_lane_queue_items{batcher="lanes",lane="live"} 0',
    'sheaf_lane_queue_items{batcher="lanes",lane="bulk"} 3',
    "# TYPE sheaf_lane_latency_seconds summary",
    'sheaf_lane_latency_seconds{batcher="lanes",lane="live",quantile="0.99"} 0',
    'sheaf_bulk_oldest_seconds{batcher="lanes"} 1',
  ])
    assert.ok(lines().includes(line), line);
  await clock.advanceAsync(2000);
  await calls;
  assert.ok(lines().includes(two.replace(/2$/, "3")));
});

test("a rate limit shows what is believed of it, what is left and used, and what refusals cost", async () => {
  const clock = manualClock();
  let refusals = 1;
  const batcher = createBatcher(
    async (numbers: number[], context) => {
      context.reportWeight(refusals > 0 ? 0 : 5);
      if (refusals-- <= 0) return numbers;
      context.putBack();
      throw Object.assign(new Error("429"), { retryAfterMs: 2000 });
    },
    {
      name: "limited",
      clock,
      policy: greedy(),
      weigh: () => 20,
      rateLimit: createRateLimit({ limits: { runs: 600, weight: 6000, perMs: 60_000 }, clock }),
    },
  );
  const metrics = prometheusMetrics([batcher, doubling("free")]);
  const used = (): string =>
    /^sheaf_rate_limit_used_total\{batcher="limited",kind="weight"\} (\d+)$/m.exec(metrics.text())![1]!;
  assert.equal(used(), "0");
  const call = batcher(1);
  await clock.advanceAsync(1000);
  assert.equal(used(), "0", "the API did not count the refused run");
  await clock.advanceAsync(2000);
  assert.equal(await call, 1);
  const lines = metrics.text().split("\n");
  for (const line of [
    "# TYPE sheaf_rate_limit_per_minute gauge",
    'sheaf_rate_limit_per_minute{batcher="limited",kind="runs"} 600',
    'sheaf_rate_limit_per_minute{batcher="limited",kind="weight"} 6000',
    'sheaf_rate_limit_used_total{batcher="limited",kind="runs"} 2',
    'sheaf_rate_limit_used_total{batcher="limited",kind="weight"} 5',
    'sheaf_rate_limit_share_ratio{batcher="limited"} 1',
    'sheaf_rate_limit_refusals_total{batcher="limited"} 0',
    'sheaf_rate_limit_pause_seconds_total{batcher="limited"} 2',
  ])
    assert.ok(lines.includes(line), line);
  assert.ok(
    !lines.some(
      (line) => line.startsWith("sheaf_rate_limit") && /free|kind="items"/.test(line) && !line.includes("used"),
    ),
  );
});

test("a counter of the rate limit never goes back where a run weighed less than was counted at its start", async () => {
  const clock = manualClock();
  let end: (() => void) | undefined;
  const run = (numbers: number[], context: BatchContext): Promise<number[]> =>
    new Promise((resolve) => {
      end = () => {
        context.reportWeight(1);
        resolve(numbers);
      };
    });
  const batcher = createBatcher(run, {
    name: "a",
    clock,
    policy: greedy(),
    weigh: () => 20,
    rateLimit: createRateLimit({ limits: { weight: 6000, perMs: 60_000 }, clock }),
  });
  const metrics = prometheusMetrics([batcher]);
  const used = (): number => Number(/used_total\{batcher="a",kind="weight"\} (\d+)/.exec(metrics.text())![1]);
  const call = batcher(1);
  await clock.advanceAsync(0);
  assert.equal(used(), 20);
  end!();
  await call;
  assert.equal(used(), 20);
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
