import assert from "node:assert/strict";
import { test } from "node:test";
import { comparisons, leadOf } from "../../dist/load/comparison.js";
import { configured } from "./results.js";

const sentenceOf = (...runs: Parameters<typeof configured>[]): string =>
  comparisons(runs.map((run) => configured(...run))).get("steady")!;

test("a winner is named with both figures, the ratio and its range", () => {
  const sentence = sentenceOf(
    ["unbatched", { p50: 30, p99: 90 }],
    ["fifo", { p50: 20, p99: 60 }],
    ["auto", { p50: 5, p99: 12 }],
  );
  assert.match(
    sentence,
    /^auto won\. Median \(p50\): auto 5 ms; 4× \([\d.]+× to [\d.]+×\) lower than the next, fifo with 20 ms\. Tail \(p99\): auto 12 ms; 5× \(/,
  );
});

test("runs that differ by less than their own scatter count as equal", () => {
  const noisy = { scatter: 0.2 };
  const sentence = sentenceOf(
    ["fifo", { p50: 5.2, p99: 11.5, seed: 1, ...noisy }],
    ["auto", { p50: 5, p99: 12, seed: 2, ...noisy }],
  );
  assert.match(sentence, /^No difference beyond noise between fifo and auto: p50 [\d.]+ ms to [\d.]+ ms, p99 /);
});

test("the lowest median and the lowest tail may be of two configurations: then none wins", () => {
  const sentence = sentenceOf(["greedy", { p50: 5, p99: 90 }], ["fifo", { p50: 20, p99: 30 }]);
  assert.doesNotMatch(sentence, /won/);
  assert.match(sentence, /Median \(p50\): greedy 5 ms; .* Tail \(p99\): fifo 30 ms; 3× /);
});

test("a configuration that leaves requests unanswered does not win by the latency of the others", () => {
  const one = sentenceOf(["unbatched", { p50: 2, p99: 3, successRate: 0.4 }], ["auto", { p50: 5, p99: 12 }]);
  assert.equal(one, "auto won: it answered 100 % of the requests, unbatched 40 %.");
  assert.equal(sentenceOf(["a", { p50: 0, p99: 0, successRate: 0 }]), "Nothing was answered.");
});

test("no verdict where the generator fell behind, or the runs are too short to tell", () => {
  const saturated = sentenceOf(["a", { p50: 5, p99: 9, saturated: "lag" }], ["b", { p50: 50, p99: 90 }]);
  assert.match(saturated, /^No verdict: the load generator could not keep its schedule with a,/);
  const short = sentenceOf(["a", { p50: 5, p99: 9, parts: 0 }], ["b", { p50: 50, p99: 90, parts: 0 }]);
  assert.match(short, /^No verdict: a run of less than 1\.25 s/);
});

test("one configuration has nothing to be compared with", () => {
  assert.equal(sentenceOf(["auto", { p50: 5, p99: 12 }]), "p50 5 ms, p99 12 ms, 100 % answered.");
});

test("of 300 pairs of equal configurations at most 3 % count as different; a factor of 1.5 is found in 95 %", () => {
  const told = (ratio: number): number =>
    Array.from({ length: 300 }, (_, i) => {
      const about = { p99: 20, scatter: 0.1 };
      const [a, b] = [configured("a", { p50: 10, seed: 2 * i, ...about }), configured("b", { p50: 10 * ratio, seed: 2 * i + 1, ...about })]; // prettier-ignore
      const [low, high] = a.latencyMs.p50 <= b.latencyMs.p50 ? [a, b] : [b, a];
      return leadOf(low, high, "p50").low > 1 ? 1 : 0;
    }).reduce<number>((sum, one) => sum + one, 0);
  assert.ok(told(1) <= 9, `${told(1)} of 300`);
  assert.ok(told(1.5) >= 285, `${told(1.5)} of 300`);
});
