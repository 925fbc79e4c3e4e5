import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "sheaf";
import { problemFor } from "../../dist/http/replies.js";
import { defaultSettings, proxyDefaults } from "../../dist/settings/settings.js";
import { overloadOrderOf } from "../../dist/shared/strategies.js";

test("the newest go first under overload, but fifo keeps the order of arrival unless it is asked not to", () => {
  const orderOf = (settings: object): string => overloadOrderOf({ ...defaultSettings, ...settings });
  for (const schedulerStrategy of ["auto", "greedy", "adaptive"]) {
    assert.equal(orderOf({ schedulerStrategy }), "newest");
    assert.equal(orderOf({ schedulerStrategy, overloadOrder: "arrival" }), "arrival");
  }
  assert.equal(orderOf({ schedulerStrategy: "fifo" }), "arrival");
  assert.equal(orderOf({ schedulerStrategy: "fifo", overloadOrder: "newest" }), "newest");
  assert.equal(orderOf(proxyDefaults), "newest");
});

test("refused clients are told to come back over the time that the queue needs, and none before that", () => {
  const full = new BatcherError("QUEUE_FULL", "full", { queued: 1000, drainMs: 2500 });
  const times = Array.from({ length: 1000 }, () =>
    Number(problemFor(full, { name: "model", settings: defaultSettings }).headers["retry-after-ms"]),
  );
  assert.ok(Math.min(...times) >= 2500 && Math.max(...times) <= 5000);
  for (const from of [2500, 3000, 3500, 4000, 4500]) {
    const share = times.filter((ms) => ms >= from && ms < from + 500).length / times.length;
    assert.ok(share > 0.1 && share < 0.3, `${share} of them between ${from} and ${from + 500} ms`);
  }
});
