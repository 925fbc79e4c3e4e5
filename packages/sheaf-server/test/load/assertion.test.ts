import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAssertions, parseAssertion } from "../../dist/load/bench/assertion.js";
import type { LoadResult } from "../../dist/load/result.js";

const result = {
  configuration: "auto",
  pattern: "steady",
  achievedPerS: 987.6,
  successRate: 0.995,
  latencyMs: { mean: 4, p50: 3, p75: 5, p90: 8, p95: 12, p99: 49.9, p999: 120, max: 200 },
  sendLagMs: { p50: 0.5, p99: 1.2, max: 3 },
} as unknown as LoadResult;

const holds = (text: string): boolean => parseAssertion(text).holds(result);

test("units, comparisons and metrics mean what they say", () => {
  for (const text of ["p99<50ms", "p99 <= 0.0499s", "p99>49ms", "p99.9<120.1ms", "mean<4001us", "lag<2ms"]) {
    assert.ok(holds(text), text);
  }
  for (const text of ["throughput>=987/s", "success>=99.5%", "max<=200ms"]) assert.ok(holds(text), text);
  for (const text of ["p99<49.9ms", "success>99.5%", "throughput>1000/s", "max<200ms"]) assert.ok(!holds(text), text);
});

test("a configuration in front restricts it; without one it counts for all", () => {
  const fifo = { ...result, configuration: "fifo", latencyMs: { ...result.latencyMs, p99: 80 } };
  const check = (text: string) => checkAssertions([parseAssertion(text)], [result, fifo]).map(({ holds: yes }) => yes);
  assert.deepEqual(check("auto:p99<50ms"), [true]);
  assert.deepEqual(check("p99<50ms"), [true, false]);
});

test("what is not an assertion is refused, with an example of one", () => {
  for (const text of [
    "",
    ..."p99 p99<50 p99=50ms p42<1ms success>99 throughput>1ms p99<-1ms constructor<1ms".split(" "),
  ])
    assert.throws(() => parseAssertion(text), /an assertion reads METRIC<VALUE with its unit/, text);
});

test("the outcome says what there was instead, in the unit asked for", () => {
  const [outcome] = checkAssertions([parseAssertion("p99<0.04s")], [result]);
  const expected = {
    assertion: "p99<0.04s",
    configuration: "auto",
    pattern: "steady",
    holds: false,
    actual: "0.0499s",
  };
  assert.deepEqual(outcome, expected);
});

test("recovery is that of clients that try again; without them no condition on it holds", () => {
  const back = (recoveryMs: number) => ({ ...result, goodput: { recoveryMs } }) as unknown as LoadResult;
  assert.ok(parseAssertion("recovery<6s").holds(back(250)));
  assert.ok(!parseAssertion("recovery<6s").holds(back(Infinity)));
  assert.ok(!holds("recovery<6s") && !holds("recovery>=0s"));
});
