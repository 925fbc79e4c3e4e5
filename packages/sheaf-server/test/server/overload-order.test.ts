import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "sheaf";
import { problemFor, type Queue } from "../../dist/http/replies.js";
import { defaultSettings } from "../../dist/settings/settings.js";
import { overloadOrderOf } from "../../dist/shared/strategies.js";

test("the newest go first under overload, but fifo keeps the order of arrival", () => {
  for (const strategy of ["auto", "greedy", "adaptive"] as const) assert.equal(overloadOrderOf(strategy), "newest");
  assert.equal(overloadOrderOf("fifo"), "arrival");
});

const retriesOf = (queue: Queue, details: { queued: number; drainMs: number }, count: number): number[] => {
  const full = new BatcherError("QUEUE_FULL", "full", details);
  return Array.from({ length: count }, () => Number(problemFor(full, queue).headers["retry-after-ms"]));
};

test("refused clients are told to come back no faster than the queue is served, and none before it can be empty", () => {
  // A queue of 64 that takes 2.5 s: 39 ms a request. 336 were refused.
  const times = retriesOf({ name: "model", settings: defaultSettings }, { queued: 64, drainMs: 2500 }, 336);
  assert.ok(Math.min(...times) >= 2500);
  for (let from = 2500; from < Math.max(...times); from += 2500) {
    const came = times.filter((ms) => ms >= from && ms < from + 2500).length;
    assert.ok(came <= 64, `${came} of them from ${from} ms on`);
  }
  assert.ok(Math.max(...times) <= 2500 + 2 * 2500 * (336 / 64), `${Math.max(...times)} ms`);
});

test("the times of two queues are their own, and no time is beyond 16 drains or a minute", () => {
  const settings = defaultSettings;
  const [busy, quiet] = [
    { name: "busy", settings },
    { name: "quiet", settings },
  ];
  const times = retriesOf(busy, { queued: 10, drainMs: 100 }, 5000);
  assert.ok(Math.min(...times) >= 100 && Math.max(...times) <= 1600, `${Math.max(...times)} ms`);
  assert.ok(retriesOf(quiet, { queued: 10, drainMs: 100 }, 1)[0]! < 120);
  const long = retriesOf({ name: "slow", settings }, { queued: 10, drainMs: 1e6 }, 100);
  assert.ok(long.every((ms) => ms >= 30_000 && ms <= 60_000));
});
