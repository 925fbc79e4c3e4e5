import assert from "node:assert/strict";
import { test } from "node:test";
import { auto } from "../../dist/index.js";
import { record, view, withCost, type Trained } from "./view.ts";

/** A policy that has seen runs of 2 ms and a call each `everyMs`, up to `nowMs`. */
function trained(everyMs: number): { policy: Trained; nowMs: number } {
  const policy = withCost(auto());
  let nowMs = 0;
  for (let i = 0; i < 200; i++) {
    nowMs += everyMs;
    policy.arrived!(view({ nowMs, waiting: 2, outstanding: 8, arrivals: 1 }));
    const size = 1 + (i % 2);
    policy.observe(record(size, 1.9 + 0.1 * size, { startedAtMs: nowMs - 2 }), nowMs);
  }
  return { policy, nowMs };
}

const heldMs = ({ policy, nowMs }: ReturnType<typeof trained>, overrides: object): number => {
  const decision = policy.decide(view({ nowMs, waiting: 1, outstanding: 1, ...overrides }));
  return typeof decision === "object" && "askAgainAtMs" in decision ? decision.askAgainAtMs - nowMs : 0;
};

test("where cores are short a batch is held for others, at most as long as the fixed part of a run", () => {
  const ms = heldMs(trained(0.7), { coreShortage: 1 });
  assert.ok(ms >= 1 && ms <= 2.1, `held for ${ms} ms`);
});

test("nothing is held for cores where they are idle, or nobody says", () => {
  assert.equal(heldMs(trained(0.7), { coreShortage: 0 }), 0);
  assert.equal(heldMs(trained(0.7), {}), 0);
});

test("nothing is held for cores where few would join, past a deadline, or after a wait of several runs", () => {
  assert.equal(heldMs(trained(20), { coreShortage: 1 }), 0, "few come");
  const trainedOne = trained(0.7);
  assert.equal(heldMs(trainedOne, { coreShortage: 1, deadlineAtMs: trainedOne.nowMs + 5 }), 0, "deadline");
  assert.equal(heldMs(trainedOne, { coreShortage: 1, oldestAtMs: trainedOne.nowMs - 10 }), 0, "waited");
});

test("a lone caller is not held, however short of cores the runs are", () => {
  const policy = withCost(auto());
  for (let i = 1; i <= 100; i++) {
    const nowMs = 3 * i;
    policy.arrived!(view({ nowMs, waiting: 1, outstanding: 1, arrivals: 1 }));
    assert.deepEqual(policy.decide(view({ nowMs, waiting: 1, coreShortage: 1 })), { run: 1, reason: undefined });
    policy.observe(record(1, 2, { startedAtMs: nowMs }), nowMs + 2);
  }
});

test("a caller who is left alone by others is soon held for cores no more", () => {
  const [short, idle] = [trained(0.7), trained(0.7)];
  let held = 0;
  for (let i = 1; i <= 60; i++) {
    const nowMs = short.nowMs + 2.2 * i;
    const [one, other] = [
      { policy: short.policy, coreShortage: 1 },
      { policy: idle.policy, coreShortage: 0 },
    ].map(({ policy, coreShortage }) => {
      policy.arrived!(view({ nowMs, waiting: 1, outstanding: 1, arrivals: 1 }));
      const decision = policy.decide(view({ nowMs, waiting: 1, outstanding: 1, coreShortage }));
      policy.observe(record(1, 2, { startedAtMs: nowMs }), nowMs + 2);
      return JSON.stringify(decision);
    });
    if (one !== other) held = i;
  }
  assert.ok(held > 0 && held <= 40, `the call ${held} was held`);
});

test("callers who come back when they are answered are not held: nobody else would join", () => {
  const decisions = [0, 1].map((coreShortage) => {
    const policy = withCost(auto());
    let nowMs = 0;
    for (let i = 0; i < 200; i++) {
      for (let outstanding = 1; outstanding <= 8; outstanding++) {
        nowMs += 0.1;
        policy.arrived!(view({ nowMs, waiting: outstanding, outstanding, arrivals: 1, prefetch: 1 }));
      }
      policy.observe(record(8, 2.7, { startedAtMs: nowMs }), nowMs + 2.7);
      nowMs += 2.7;
    }
    policy.arrived!(view({ nowMs, waiting: 1, outstanding: 1, arrivals: 1, prefetch: 1 }));
    return policy.decide(view({ nowMs, waiting: 1, outstanding: 1, coreShortage, prefetch: 1 }));
  });
  assert.deepEqual(decisions[1], decisions[0]);
});

test("a hold for cores ends once: the batch that it was for goes when asked again", () => {
  const { policy, nowMs } = trained(0.7);
  const decide = (atMs: number): unknown =>
    policy.decide(view({ nowMs: atMs, waiting: 2, outstanding: 2, oldestAtMs: nowMs, coreShortage: 1 }));
  const first = decide(nowMs) as { askAgainAtMs: number };
  assert.ok(first.askAgainAtMs > nowMs);
  assert.deepEqual(decide((nowMs + first.askAgainAtMs) / 2), first, "asked in between");
  assert.ok("run" in (decide(first.askAgainAtMs) as object));
});
