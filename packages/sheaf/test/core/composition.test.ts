import assert from "node:assert/strict";
import { test } from "node:test";
import { compose, type Candidate } from "../../dist/core/pick/composition.js";
import { LearnedCost } from "../../dist/core/measure/learned-cost.js";
import { auto } from "../../dist/index.js";
import { Random } from "../../dist/tuning/traffic/random.js";
import { view } from "../policies/view.js";

const fixedMs = 10;
const perWeightMs = 0.02;

/** A cost model that has learned 10 ms and 0.02 ms for each unit of weight. */
function learned(padded: boolean): LearnedCost {
  const cost = new LearnedCost({ weights: "learned" });
  const random = new Random(1);
  for (let run = 0; run < 60; run++) {
    const size = 1 + Math.floor(8 * random.uniform());
    const weights = Array.from({ length: size }, () => Math.ceil(40 * Math.exp(1.7 * random.normal())));
    const sum = weights.reduce((total, each) => total + each, 0);
    const heaviest = Math.max(...weights);
    cost.observe(size, fixedMs + perWeightMs * (padded ? heaviest * size : sum), { sum, heaviest });
  }
  assert.ok(Math.abs(cost.perWeightMs - perWeightMs) < 1e-3);
  return cost;
}

const item = (weight: number, some: Partial<Candidate> = {}): Candidate => ({
  tier: 1,
  weight,
  arrivedAtMs: 0,
  deadlineAtMs: Infinity,
  dueAtMs: Infinity,
  ...some,
});

const limits = { maxBatchSize: 32, maxBatchWeight: Infinity, padded: false, fill: undefined, onlyBulk: false };

function chosen(items: readonly Candidate[], padded = false, nowMs = 0, own: Partial<typeof limits> = {}): number[] {
  const cost = learned(padded);
  const weight = items.reduce((sum, each) => sum + each.weight, 0);
  const targetMs = auto().targetMs!(view({ waiting: items.length, weight, cost }));
  const batch = compose(items, { ...limits, ...own }, { cost, targetMs, caution: 1 }, nowMs);
  return batch.map(({ weight: each }) => each);
}

test("a heavy item goes alone, after the short ones that came behind it", () => {
  assert.deepEqual(chosen([item(4000), item(20), item(30)]), [20, 30]);
  assert.deepEqual(chosen([item(4000)]), [4000]);
});

test("like lengths go together where cost is padded", () => {
  assert.deepEqual(chosen([item(900), item(40), item(950), item(45)], true), [40, 45]);
  assert.deepEqual(chosen([item(40), item(200)], true), [40, 200], "where padding costs little, all do");
});

test("one that is due goes first, whatever it costs", () => {
  assert.equal(chosen([item(4000, { dueAtMs: 50 }), item(20), item(30)], false, 60)[0], 4000);
  assert.equal(chosen([item(4000, { dueAtMs: 70 }), item(20), item(30)], false, 60)[0], 20);
});

test("a heavy item's turn comes by waiting alone", () => {
  const waiting = (ms: number): number[] => chosen([item(4000, { arrivedAtMs: -ms }), item(20)], false, 0);
  assert.equal(waiting(100)[0], 20);
  assert.equal(waiting(100_000)[0], 4000);
});

test("no item makes another late that could be in time", () => {
  // Together they take 10.8 ms.
  assert.deepEqual(chosen([item(20, { deadlineAtMs: 10.5 }), item(20)]), [20]);
  assert.deepEqual(chosen([item(20, { deadlineAtMs: 10.9 }), item(20)]), [20, 20]);
  assert.deepEqual(
    chosen([item(20, { deadlineAtMs: 5 }), item(20)]),
    [20, 20],
    "one that is late anyway holds nobody up",
  );
});

test("higher lanes go first whatever they cost, and limits hold", () => {
  assert.equal(chosen([item(20), item(4000, { tier: 0 })])[0], 4000);
  assert.deepEqual(chosen([item(20), item(21), item(22)], false, 0, { maxBatchSize: 2 }), [20, 21]);
  assert.deepEqual(chosen([item(20), item(21), item(22)], false, 0, { maxBatchWeight: 42 }), [20, 21]);
  assert.deepEqual(chosen([item(20), item(21), item(22)], false, 0, { maxBatchWeight: 44, padded: true }), [20, 21]);
  assert.deepEqual(chosen([item(90), item(91)], false, 0, { maxBatchWeight: 80 }), [90], "a heavier item goes alone");
});

test("items of one order keep it: behind one that stays, none of them goes", () => {
  const order = {};
  const last = item(20, { order });
  assert.deepEqual(chosen([item(4000, { order }), last, item(30)]), [30]);
  assert.deepEqual(
    chosen([item(50, { order }), item(20, { order }), item(30)]).filter((w) => w !== 30),
    [50, 20],
  );
});

// The choice beside all others: of all subsets of a small queue as the next batch, each followed by the same rule until
// all have gone.
interface Small {
  readonly items: readonly Candidate[];
  readonly cost: LearnedCost;
  readonly padded: boolean;
}

const runMsOf = (items: readonly Candidate[], padded: boolean): number => {
  const weights = items.map(({ weight }) => weight);
  const counted = padded ? Math.max(...weights) * weights.length : weights.reduce((sum, each) => sum + each, 0);
  return fixedMs + perWeightMs * counted;
};

/** Mean latency over own run, the share in time, and what both come to; lower is better. */
function drained({ items, cost, padded }: Small, first: readonly Candidate[]): number {
  let loss = 0;
  let left = items;
  let nowMs = 0;
  for (let batch = first; left.length > 0;) {
    nowMs += runMsOf(batch, padded);
    for (const each of batch) {
      const isLate = nowMs > each.deadlineAtMs + 1e-6;
      loss += each.deadlineAtMs === Infinity ? (nowMs - each.arrivedAtMs) / runMsOf([each], padded) : isLate ? 1 : 0;
    }
    left = left.filter((each) => !batch.includes(each));
    const canMakeIt = left.filter((each) => nowMs + runMsOf([each], padded) <= each.deadlineAtMs);
    if (canMakeIt.length < left.length) {
      loss += left.length - canMakeIt.length;
      left = canMakeIt;
    }
    if (left.length > 0) batch = choice({ items: left, cost, padded }, nowMs);
  }
  return loss / items.length;
}

function choice({ items, cost }: Small, nowMs: number): Candidate[] {
  const weight = items.reduce((sum, each) => sum + each.weight, 0);
  const targetMs = auto().targetMs!(view({ waiting: items.length, weight, cost }));
  return compose(items, limits, { cost, targetMs, caution: 1 }, nowMs);
}

for (const padded of [false, true])
  for (const times of [Infinity, 3, 10])
    test(`of all subsets of up to 8 ${padded ? "padded" : "summed"} items, few are better batches (deadlines ${times} times)`, () => {
      const cost = learned(padded);
      const random = new Random(7);
      const losses = { own: 0, best: 0, arrival: 0 };
      for (let queue = 0; queue < 60; queue++) {
        const items = Array.from({ length: 2 + Math.floor(7 * random.uniform()) }, () => {
          const weight = Math.max(1, Math.min(8192, Math.round(40 * Math.exp(1.682 * random.normal()))));
          const arrivedAtMs = -20 * random.uniform();
          return item(weight, { arrivedAtMs, deadlineAtMs: arrivedAtMs + times * (fixedMs + perWeightMs * weight) });
        }).sort((a, b) => a.arrivedAtMs - b.arrivedAtMs);
        const small = { items, cost, padded };
        losses.own += drained(small, choice(small, 0));
        losses.arrival += drained(small, items);
        let best = Infinity;
        for (let subset = 1; subset < 2 ** items.length; subset++) {
          const batch = items.filter((_, at) => (subset >> at) % 2 === 1);
          best = Math.min(best, drained(small, batch));
        }
        losses.best += best;
      }
      const [own, best, arrival] = [losses.own, losses.best, losses.arrival].map((loss) => loss / 60);
      assert.ok(own! <= 1.15 * best! + 0.02, `${own} where ${best} is possible`);
      assert.ok(own! < arrival!, `${own}, and in order of arrival ${arrival}`);
    });
