import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { recordCalls, type RecordOptions } from "../../dist/tuning/index.js";

interface Line {
  readonly [name: string]: unknown;
  readonly run?: number;
  readonly waits?: number[];
}

/** A batcher whose runs take 10 ms, and the lines of its record. */
function recorded(options: object = {}, more: RecordOptions = {}, run?: (items: unknown[]) => Promise<unknown[]>) {
  const clock = manualClock();
  const batcher = createBatcher(
    run ??
      (async (items: unknown[]) => {
        await new Promise<void>((resolve) => void clock.after(10, resolve));
        return items;
      }),
    { clock, policy: greedy(), concurrency: 1, maxBatchSize: 4, ...options },
  );
  const lines: Line[] = [];
  const end = recordCalls(batcher, (line) => lines.push(JSON.parse(line) as Line), more);
  return { clock, batcher, end, lines, runs: () => lines.filter(({ run }) => run !== undefined) };
}

test("a run is one line with each call's wait, lane, tenant, weight and timeout; equal values stand once", async () => {
  const { clock, batcher, runs, lines, end } = recorded({
    weigh: (item: { weight: number }) => item.weight,
    fairKey: (item: { tenant: string }) => item.tenant,
  });
  const first = batcher({ weight: 3, tenant: "planted-tenant" });
  await clock.advanceAsync(2);
  const others = [
    batcher({ weight: 3, tenant: "other" }, { priority: "bulk", timeoutMs: 5000 }),
    batcher({ weight: 1, tenant: "planted-tenant" }),
  ];
  await clock.advanceAsync(20);
  await Promise.all([first, ...others]);
  const [one, two] = runs();
  assert.deepEqual(one, {
    run: 1,
    model: "batcher",
    at: 0,
    took: 10_000,
    held: 10_000,
    waits: [0],
    tenant: 0,
    weight: 3,
  });
  assert.deepEqual(two!.waits, [8000, 8000]);
  // An interactive call goes first.
  assert.deepEqual(
    [two!["lane"], two!["tenant"], two!["weight"], two!["timeout"]],
    [
      [1, 2],
      [0, 1],
      [1, 3],
      [0, 5000],
    ],
  );
  end();
  assert.equal(JSON.stringify(lines).includes("planted"), false);
  const later: Line[] = [];
  recordCalls(batcher, (line) => later.push(JSON.parse(line) as Line));
  void batcher({ weight: 1, tenant: "other" });
  await clock.advanceAsync(20);
  assert.equal(later[1]!["tenant"], 0, "numbered anew");
  await batcher(4 as never).catch(() => undefined);
  assert.equal(runs().length, 2, "it has ended");
});

test("calls that leave a run stay in it with their end; failed items and runs in parts are counted", async () => {
  const clock = manualClock();
  const { batcher, runs } = recorded({ clock, onBatchError: "bisect" }, {}, async (items) => {
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    if (items.includes("bad")) throw new Error("bad");
    return items;
  });
  const controller = new AbortController();
  const calls = [
    batcher("a"),
    batcher("b", { timeoutMs: 5 }),
    batcher("c", { signal: controller.signal }),
    batcher("bad"),
  ];
  const settled = Promise.allSettled(calls);
  await clock.advanceAsync(3);
  controller.abort();
  await clock.advanceAsync(100);
  const ends = await settled;
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected", "rejected"],
  );
  const [run] = runs();
  assert.deepEqual([run!["expired"], run!["aborted"]], [[1], [2]]);
  assert.deepEqual([run!["outcome"], run!["failed"], run!["again"]], ["partial", 1, true]);
});

test("a line a second counts the calls that joined no run: refused, expired, given up, cached", async () => {
  let cached = 0;
  const { clock, batcher, lines, end } = recorded({ maxQueueSize: 3, maxBatchSize: 1 }, { cached: () => cached });
  const controller = new AbortController();
  const calls = [batcher(1), batcher(2, { timeoutMs: 4 }), batcher(3, { signal: controller.signal }), batcher(4)];
  const settled = Promise.allSettled(calls);
  cached = 7;
  await clock.advanceAsync(1);
  controller.abort();
  await clock.advanceAsync(1500);
  await settled;
  void batcher(5);
  await clock.advanceAsync(10);
  const counts = lines.filter(({ run, at }) => run === undefined && at !== 0);
  assert.equal(counts.length, 1);
  const { refused, expired, gaveUp, cached: hits, since } = counts[0]!;
  assert.deepEqual({ refused, expired, gaveUp, hits, since }, { refused: 1, expired: 1, gaveUp: 1, hits: 7, since: 0 });
  const settings = { maxBatchSize: 1, concurrency: 1, maxQueueSize: 3, policy: "greedy" };
  assert.deepEqual(counts[0]!["settings"], settings);
  end();
});

test("with too many calls a second, whole seconds are left out and the gap is stated", async () => {
  const { clock, batcher, lines, runs } = recorded({ maxBatchSize: 30_000, maxQueueSize: 100_000 });
  for (let second = 0; second < 6; second++) {
    const calls = batcher.many(Array.from({ length: 30_000 }, (_, i) => i));
    await clock.advanceAsync(1000);
    await calls;
  }
  // 30,000 calls a second, and 20,000 is the bound: every second one.
  assert.deepEqual(
    runs().map(({ at }) => at),
    [0, 2_000_000, 4_000_000],
  );
  const seconds = lines.filter(({ run }) => run === undefined).map(({ since, at }) => [since, at]);
  assert.ok(
    seconds.some(([since], i) => i > 0 && (since as number) > (seconds[i - 1]![1] as number)),
    JSON.stringify(seconds),
  );
});

test("a batcher whose batches run elsewhere, and a write that is no function, are refused", () => {
  const { batcher } = recorded();
  assert.throws(() => recordCalls(batcher, 1 as never), /write must be a function, got 1/);
  assert.throws(() => recordCalls({ name: "far", subscribe: batcher.subscribe } as never, () => undefined), {
    name: "TypeError",
    message: /needs a batcher of createBatcher/,
  });
});
