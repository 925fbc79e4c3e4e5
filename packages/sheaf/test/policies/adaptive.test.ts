import assert from "node:assert/strict";
import { test } from "node:test";
import { adaptive } from "../../dist/policies/adaptive.js";
import { record, view, withCost, type Trained } from "./view.js";

const limitOf = (policy: Trained): number => {
  const decision = policy.decide(view({ nowMs: 1e9, oldestAtMs: 0, waiting: 1000, maxWaitMs: 40 }));
  assert.ok(typeof decision === "object" && "run" in decision);
  return decision.run;
};
const windowOf = (policy: Trained): number => {
  const decision = policy.decide(view({ nowMs: 0, maxWaitMs: 40 }));
  return typeof decision === "object" && "askAgainAtMs" in decision ? decision.askAgainAtMs : 0;
};

test("quiet traffic is not held and may fill a whole batch", () => {
  const policy = withCost(adaptive());
  assert.equal(windowOf(policy), 0);
  assert.equal(limitOf(policy), 32);
});

test("run times over the target shrink the size, one step every three batches", () => {
  const policy = withCost(adaptive({ targetLatencyMs: 100 }));
  assert.equal(limitOf(policy), 32);
  const sizes = [];
  for (let i = 0; i < 12; i++) {
    policy.observe(record(limitOf(policy), 6 * limitOf(policy)), i);
    sizes.push(limitOf(policy));
  }
  assert.deepEqual(
    sizes.slice(0, 6),
    [32, 32, 32, 21, 21, 21],
    "the p99 of one run is unknown, then three signals a step",
  );
  assert.ok(sizes.at(-1)! * 6 <= 130, sizes.join());
});

test("a backlog grows size and window back after a slow spell", () => {
  const policy = withCost(adaptive({ targetLatencyMs: 100 }));
  limitOf(policy);
  for (let i = 0; i < 30; i++) policy.observe(record(8, 400 + 8 * limitOf(policy)), i);
  for (let i = 0; i < 30; i++) policy.observe(record(32, 10 + 10 * limitOf(policy)), i);
  const slow = limitOf(policy);
  assert.ok(slow < 32, `limit ${slow}`);
  for (let i = 0; i < 200; i++) {
    policy.arrived!(view({ nowMs: 1000 + i, waiting: 60, arrivals: 1 }));
    policy.observe(record(slow, 5), 1000 + i);
  }
  assert.equal(limitOf(policy), 32);
  assert.ok(windowOf(policy) > 0);
});

test("a fixed cost over the target does not shrink batches: smaller ones would be no faster", () => {
  const policy = withCost(adaptive({ targetLatencyMs: 20 }));
  limitOf(policy);
  for (let i = 0; i < 60; i++) policy.observe(record(1 + (i % 32), 50 + 0.1 * (i % 32)), i);
  assert.equal(limitOf(policy), 32);
});
