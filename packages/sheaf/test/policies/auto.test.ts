import assert from "node:assert/strict";
import { test } from "node:test";
import { auto } from "../../dist/policies/auto/index.js";
import type { Decision, Policy } from "../../dist/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { record, view, withCost, type Trained } from "./view.js";

/** Feeds 40 batches of a straight cost, one caller after the other and far apart. */
const trained = (of: Policy, fixedMs: number, perItemMs: number, slots = 1): Trained => {
  const policy = withCost(of);
  for (let i = 0; i < 40; i++) {
    const nowMs = i * 1000;
    const size = 1 + (i % 8);
    policy.arrived!(view({ nowMs, slots, arrivals: size, waiting: size }));
    policy.observe(
      record(size, fixedMs + perItemMs * size, { startedAtMs: nowMs }),
      nowMs + fixedMs + perItemMs * size,
    );
  }
  return policy;
};
const runs = (decision: Decision): number =>
  typeof decision === "object" && "run" in decision ? decision.run : Number.NaN;

test("cold, auto sends what waits at once", () => {
  assert.equal(runs(auto().decide(view({ waiting: 5 }))), 5);
});

test("a lone caller is not held", () => {
  const policy = trained(auto(), 10, 0.3);
  policy.arrived!(view({ nowMs: 50_000, arrivals: 1 }));
  assert.equal(runs(policy.decide(view({ nowMs: 50_000 }))), 1);
});

test("with nothing to amortise, items go one by one", () => {
  const policy = trained(auto(), 0, 2);
  assert.equal(runs(policy.decide(view({ nowMs: 50_000, waiting: 20 }))), 1);
});

test("a full batch goes at once, whole", () => {
  const policy = trained(auto(), 10, 0.3);
  assert.equal(runs(policy.decide(view({ nowMs: 50_000, waiting: 32 }))), 32);
});

test("callers who come back together are waited for: closed loops do not lock into halves", () => {
  const policy = withCost(auto());
  let nowMs = 0;
  for (let round = 0; round < 40; round++) {
    for (let i = 1; i <= 4; i++) policy.arrived!(view({ nowMs: (nowMs += 0.05), waiting: i, arrivals: 1 }));
    nowMs += 11.2;
    policy.observe(record(4, 11.2), nowMs);
  }
  policy.arrived!(view({ nowMs: (nowMs += 0.05), waiting: 1, arrivals: 1 }));
  const decision = policy.decide(view({ nowMs, waiting: 1 }));
  assert.ok(typeof decision === "object" && "askAgainAtMs" in decision, "held for the other three");
  assert.ok(decision.askAgainAtMs <= nowMs + 5.1, "for at most s(0) / 2");
});

test("several slots do not grab crumbs: a few items wait for their share of a run", () => {
  const policy = trained(auto(), 40, 0.5, 8);
  let nowMs = 100_000;
  for (let i = 0; i < 2000; i++) {
    policy.arrived!(view({ nowMs: (nowMs += 2), slots: 8, arrivals: 1, outstanding: 20 }));
    if (i % 4 === 3) policy.observe(record(4, 42), nowMs);
  }
  const decision = policy.decide(view({ nowMs, slots: 8, freeSlots: 3, outstanding: 20 }));
  assert.ok(typeof decision === "object" && "askAgainAtMs" in decision, JSON.stringify(decision));
  assert.ok(decision.askAgainAtMs < nowMs + 20, "for a fraction of a run");
});

test("nothing is held past maxWaitMs", () => {
  const policy = trained(auto({ latencyBudgetMs: 500 }), 10, 0.3);
  const decision = policy.decide(view({ nowMs: 50_000, maxWaitMs: 3 }));
  assert.ok(typeof decision === "object" && "askAgainAtMs" in decision && decision.askAgainAtMs === 50_003);
  assert.equal(runs(policy.decide(view({ nowMs: 50_003, oldestAtMs: 50_000, maxWaitMs: 3 }))), 1);
});

test("a latency budget is used up, less the run", () => {
  const policy = trained(auto({ latencyBudgetMs: 150 }), 40, 0.5);
  const decision = policy.decide(view({ nowMs: 50_000 }));
  assert.ok(typeof decision === "object" && "askAgainAtMs" in decision);
  assert.ok(decision.askAgainAtMs > 50_060 && decision.askAgainAtMs < 50_110, String(decision.askAgainAtMs));
});

test("a slow first run of a size does not keep larger batches away for good", () => {
  const policy = withCost(auto());
  const runMs = (size: number): number => 0.75 + 0.075 * size;
  let nowMs = 0;
  const ran = (size: number, slower = 1): void => policy.observe(record(size, slower * runMs(size)), (nowMs += 10));
  // The first runs of a program: most sizes once, and twice the machine was busy with something else.
  for (const size of [1, 2, 3, 4, 5, 6]) ran(size);
  for (const size of [7, 20]) ran(size, 20);
  const sizes: number[] = [];
  for (let i = 0; i < 300; i++) {
    sizes.push(runs(policy.decide(view({ nowMs, waiting: 48, maxBatchSize: 64 }))));
    ran(sizes.at(-1)!);
  }
  assert.ok(sizes[0]! <= 6, `larger ones are avoided at first, got ${sizes[0]}`);
  assert.ok(
    sizes.slice(-50).every((size) => size >= 12),
    `then they are found again, got ${sizes.slice(-50).join(" ")}`,
  );
});

test("failed batches teach nothing about cost", () => {
  const policy = trained(auto(), 10, 0.3);
  for (let i = 0; i < 50; i++) policy.observe(record(1, 0.01, { outcome: "error" }), 50_000 + i);
  // Were the cost learned from them, there would be nothing to amortise and these would go one by one.
  assert.equal(runs(policy.decide(view({ nowMs: 90_000, waiting: 8 }))), 8);
});

test("for any input, it runs at least one item or names a finite moment ahead", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = seededRandom(seed);
    const policy = withCost(auto(seed % 2 === 0 ? { latencyBudgetMs: 50 } : {}));
    let nowMs = 0;
    for (let i = 0; i < 2000; i++) {
      nowMs += random() < 0.3 ? 0 : random() * 10 ** (random() * 6 - 3);
      const waiting = 1 + Math.floor(random() ** 3 * 200);
      const queue = view({
        nowMs,
        waiting,
        oldestAtMs: nowMs - random() * 20,
        outstanding: waiting + Math.floor(random() * 50),
        slots: 1 + (seed % 4),
        maxBatchSize: seed % 5 === 0 ? Infinity : 32,
        arrivals: waiting,
      });
      if (random() < 0.5) policy.arrived!(queue);
      if (random() < 0.3) {
        const outcome = random() < 0.1 ? "error" : "ok";
        policy.observe(record(1 + Math.floor(random() * 32), random() < 0.05 ? 0 : random() * 30, { outcome }), nowMs);
      }
      const decision = policy.decide(queue);
      assert.ok(typeof decision === "object", `seed ${seed}: ${String(decision)}`);
      if ("run" in decision)
        assert.ok(decision.run >= 1 && decision.run <= waiting, `seed ${seed}: run ${decision.run}`);
      else assert.ok(decision.askAgainAtMs > nowMs && decision.askAgainAtMs < nowMs + 1e4, `seed ${seed}`);
    }
  }
});

/** A closed loop over one worker: after each batch its callers come back one by one, then all of them run together. */
const closedLoop = (callers: number, runMs: (size: number) => number, backMs: number, prefetch: 0 | 1): Trained => {
  const policy = withCost(auto());
  let nowMs = 0;
  for (let round = 0; round < 60; round++) {
    // Now and then a smaller batch, so that the cost of halves is known.
    const size = round % 3 === 0 ? callers / 2 : callers;
    for (let back = 1; back <= size; back++) {
      nowMs += backMs;
      policy.arrived!(view({ nowMs, arrivals: 1, outstanding: callers - size + back, prefetch, maxBatchSize: 64 }));
    }
    nowMs += runMs(size);
    policy.observe(record(size, runMs(size)), nowMs);
  }
  return policy;
};

test("with a worker that takes a batch ahead, halves of a closed loop overlap with the way of the others", () => {
  const policy = closedLoop(64, (size) => 0.3 + 0.05 * size, 0.06, 1);
  assert.equal(policy.aheadSize, 32);
  assert.equal(runs(policy.decide(view({ nowMs: 1e6, waiting: 40, prefetch: 1, maxBatchSize: 64 }))), 32);
});

test("halves that cost more than the callers' way back stay whole, and so do batches of a worker that takes none ahead", () => {
  assert.equal(closedLoop(64, (size) => 10 + 0.05 * size, 0.06, 1).aheadSize, Infinity);
  assert.equal(closedLoop(64, (size) => 0.3 + 0.05 * size, 0.06, 0).aheadSize, Infinity);
});

test("callers who do not wait for each other, alone or in bursts, are not cut in halves", () => {
  const random = seededRandom(7);
  const poisson = withCost(auto());
  const bursts = withCost(auto());
  let nowMs = 0;
  for (let batch = 0; batch < 400; batch++) {
    let size = 0;
    const endAtMs = nowMs + 5;
    for (; nowMs < endAtMs; nowMs += -Math.log(1 - random()) / 2) {
      poisson.arrived!(view({ nowMs, arrivals: 1, outstanding: ++size, prefetch: 1 }));
    }
    poisson.observe(record(Math.max(1, size), 5), nowMs);
    bursts.arrived!(view({ nowMs, arrivals: 20, outstanding: 20, prefetch: 1 }));
    bursts.observe(record(20, 2 + 0.1 * 20), nowMs + 4);
  }
  assert.equal(poisson.aheadSize, Infinity);
  assert.equal(bursts.aheadSize, Infinity);
});
