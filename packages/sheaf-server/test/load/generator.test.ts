import assert from "node:assert/strict";
import { test } from "node:test";
import { runLoad, type LoadOptions } from "../../dist/load/generator.js";
import type { LoadResult } from "../../dist/load/result.js";
import type { RequestEnd, Target } from "../../dist/load/target.js";
import { manualClock, type ManualClock } from "sheaf/testing";

/** A server on the stepped clock; `answerAt` says when it answers a request sent at a moment. */
function fakeTarget(clock: ManualClock, answerAt: (sentAtMs: number, index: number) => number, status = 200) {
  const sentAtMs: number[] = [];
  let cancelled = 0;
  const target: Target = {
    waited: 0,
    close: () => undefined,
    send(index, done: (outcome: RequestEnd) => void) {
      const nowMs = clock.now();
      sentAtMs.push(nowMs);
      const atMs = answerAt(nowMs, index);
      const cancel = atMs === Infinity ? () => undefined : clock.after(atMs - nowMs, () => done({ status }));
      return () => {
        cancelled++;
        cancel();
      };
    },
  };
  return { target, sentAtMs, cancelled: () => cancelled };
}

async function run(clock: ManualClock, options: Partial<LoadOptions> & { target: Target }): Promise<LoadResult> {
  const result = runLoad({ configuration: "test", clock, pattern: "steady", durationMs: 10_000, ...options });
  clock.advance(60_000);
  return await result;
}

const near = (actual: number, expected: number, share: number): void =>
  assert.ok(Math.abs(actual - expected) <= share * expected, `${actual} is not within ${share} of ${expected}`);

test("a constant server shows its own latency, plus at most one tick of the generator", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 20);
  const result = await run(clock, { target, ratePerS: 1000 });
  assert.ok(result.latencyMs.p50 > 20 && result.latencyMs.p50 < 21, `p50 ${result.latencyMs.p50}`);
  assert.ok(result.latencyMs.max <= 21.0001);
  assert.ok(result.sendLagMs.max <= 1.0001);
  assert.equal(result.saturated, undefined);
  assert.equal(result.successRate, 1);
  assert.deepEqual(Object.keys(result.statuses), ["200"]);
});

test("a stalled server shows as latency, not as a gap: every request of the stall counts from when it was to leave", async () => {
  const clock = manualClock();
  // Dead from second 4 to second 6: what comes in then is answered when it wakes up.
  const { target, sentAtMs } = fakeTarget(clock, (atMs) => (atMs >= 4000 && atMs < 6000 ? 6000 : atMs) + 5);
  const result = await run(clock, { target, ratePerS: 1000 });
  // A fifth of the requests met the stall, their waits are even between 0 and 2 s.
  near(result.latencyMs.p90, 1000, 0.05);
  near(result.latencyMs.p99, 1900, 0.05);
  const sentInStall = sentAtMs.filter((atMs) => atMs >= 4000 && atMs < 6000).length;
  near(sentInStall, 2000, 0.1);
});

test("the rate is held and a request is never sent before its time", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 1);
  const result = await run(clock, { target, ratePerS: 5000, durationMs: 20_000 });
  near(result.offeredPerS, 5000, 0.01);
  near(result.achievedPerS, 5000, 0.01);
});

test("timeouts end with the whole timeout as their latency, cancel the request, and lower the success rate", async () => {
  const clock = manualClock();
  const { target, cancelled } = fakeTarget(clock, (atMs, index) => (index % 2 === 0 ? atMs + 1 : Infinity));
  const result = await run(clock, { target, ratePerS: 200, timeoutMs: 500 });
  near(result.successRate, 0.5, 0.01);
  assert.ok(Math.abs(result.latencyMs.p99 - 500) < 3, `p99 ${result.latencyMs.p99}`);
  assert.equal(result.statuses["timeout"], cancelled());
  assert.equal(result.statuses["200"]! + result.statuses["timeout"]!, result.requests);
});

test("a server that is too slow achieves its capacity, not the offered rate", async () => {
  const clock = manualClock();
  let freeAtMs = 0;
  const { target } = fakeTarget(clock, (atMs) => (freeAtMs = Math.max(freeAtMs, atMs) + 10));
  const result = await run(clock, { target, ratePerS: 200, timeoutMs: 30_000 });
  near(result.offeredPerS, 200, 0.05);
  near(result.achievedPerS, 100, 0.02);
  assert.equal(result.successRate, 1, "those that ended after the span count as successes, not as throughput");
});

test("a generator that cannot keep its schedule says so", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 1);
  const slowTimers = { now: () => clock.now(), after: (ms: number, f: () => void) => clock.after(ms + 50, f) };
  const result = await run(clock, { target, ratePerS: 100, clock: slowTimers });
  assert.match(result.saturated ?? "", /^send lag p99 \d\d\.\d ms, above 10 ms/);
  assert.ok(result.latencyMs.p50 > 20, "the lag is part of the latency");
});

test("requests of the warm-up are sent and not counted", async () => {
  const clock = manualClock();
  const { target, sentAtMs } = fakeTarget(clock, (atMs) => atMs + (atMs < 2000 ? 400 : 1));
  const result = await run(clock, { target, ratePerS: 500, warmUpMs: 2000, durationMs: 3000 });
  assert.ok(result.latencyMs.max < 3);
  // Five standard deviations of a Poisson count on either side.
  assert.ok(Math.abs(result.requests - 1500) < 194, `${result.requests} counted`);
  assert.ok(Math.abs(sentAtMs.length - 2500) < 250, `${sentAtMs.length} sent`);
});

test("a closed loop keeps n requests open: throughput is n ÷ latency", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 20);
  const result = await run(clock, { target, pattern: "closed", callers: 4 });
  near(result.achievedPerS, 200, 0.01);
  near(result.latencyMs.p50, 20, 0.01);
});

test("a step reports each of its levels, and its series adds up to the whole", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 2);
  const result = await run(clock, { target, pattern: "step", ratePerS: 1000, durationMs: 25_000 });
  assert.deepEqual(
    result.phases.map(({ label }) => label),
    ["0.2×", "0.6×", "1×", "1.4×", "1.8×"],
  );
  for (const { label, offeredPerS, achievedPerS } of result.phases) {
    near(offeredPerS, parseFloat(label) * 1000, 0.1);
    near(achievedPerS, offeredPerS, 0.01);
  }
  const mean = result.series.reduce((sum, { offeredPerS }) => sum + offeredPerS, 0) / result.series.length;
  near(mean, result.offeredPerS, 0.001);
});

test("errors keep their name and the reply's text, and are not throughput", async () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs + 1, 503);
  const result = await run(clock, { target, ratePerS: 100 });
  assert.deepEqual(Object.keys(result.statuses), ["503"]);
  assert.equal(result.latencyMs.p99, 0, "a refusal in a millisecond is not a fast answer");
  assert.equal(result.achievedPerS, 0);
  assert.equal(result.successRate, 0);
});

test("aborting ends the run, cancels what is open and rejects with the reason", async () => {
  const clock = manualClock();
  const { target, cancelled } = fakeTarget(clock, () => Infinity);
  const controller = new AbortController();
  const result = runLoad({
    configuration: "test",
    clock,
    target,
    pattern: "steady",
    ratePerS: 100,
    durationMs: 5000,
    signal: controller.signal,
  });
  clock.advance(1000);
  controller.abort(new Error("enough"));
  await assert.rejects(result, /enough/);
  assert.ok(cancelled() > 50);
});

test("options out of range are refused with what they were", () => {
  const clock = manualClock();
  const { target } = fakeTarget(clock, (atMs) => atMs);
  const load = (options: object) => () => {
    void runLoad({ configuration: "test", clock, target, pattern: "steady", durationMs: 1000, ...options });
  };
  assert.throws(load({ ratePerS: 0 }), /ratePerS must be a finite number > 0, got 0/);
  assert.throws(load({ ratePerS: 10, durationMs: Infinity }), /durationMs must be a finite number > 0/);
  assert.throws(load({ ratePerS: 1e6, timeoutMs: 10_000 }), /requests in flight/);
  assert.throws(load({ pattern: "closed", callers: 0 }), /callers must be an integer from 1/);
  assert.throws(load({ ratePerS: 10, warmUpMs: -1 }), /warmUpMs must be a finite number >= 0, got -1/);
});

/** A server on the stepped clock that ends each request as told, by its number. */
function endingTarget(clock: ManualClock, endOf: (count: number) => RequestEnd & { readonly afterMs: number }) {
  const sent: { readonly index: number; readonly atMs: number }[] = [];
  const target: Target = {
    waited: 0,
    close: () => undefined,
    send(index, done) {
      sent.push({ index, atMs: clock.now() });
      const { afterMs, ...end } = endOf(sent.length);
      return clock.after(afterMs, () => done(end));
    },
  };
  return { target, sent };
}

async function runPatient(clock: ManualClock, options: Partial<LoadOptions> & { target: Target }): Promise<LoadResult> {
  const result = runLoad({ configuration: "test", clock, pattern: "steady", durationMs: 10_000, ...options });
  for (let ms = 0; ms < 120_000; ms += 50) await clock.advanceAsync(50);
  return await result;
}

const backOff = { baseMs: 100, maxMs: 1000, jitter: 0 };

test("a client that is refused tries again, and its latency is that of the whole operation", async () => {
  const clock = manualClock();
  const { target, sent } = endingTarget(clock, (count) => ({ status: count % 2 === 1 ? 429 : 200, afterMs: 10 }));
  const retries = { patienceMs: 1000, backOff };
  const result = await runPatient(clock, { target, callers: 1, pattern: "closed", retries });
  assert.equal(result.goodput!.attemptsPerOperation, 2);
  assert.equal(sent.length, 2 * result.requests);
  assert.deepEqual(sent.slice(0, 2).map(({ index }) => index), [0, 0]); // prettier-ignore
  assert.equal(result.successRate, 1);
  near(result.latencyMs.p50, 120, 0.01);
  assert.equal(result.goodput!.recoveryMs, undefined);
});

test("a client leaves when its patience ends, and after its last attempt the operation counts as timed out", async () => {
  const clock = manualClock();
  const { target, sent } = endingTarget(clock, () => ({ status: 200, afterMs: 501 }));
  const retries = { patienceMs: 500, attempts: 3, backOff };
  const result = await runPatient(clock, { target, callers: 1, pattern: "closed", durationMs: 1000, retries });
  assert.deepEqual(result.statuses, { timeout: 1 });
  assert.deepEqual(sent.map(({ atMs }) => Math.round(atMs)), [0, 600, 1300]); // prettier-ignore
  assert.equal(result.goodput!.attemptsPerOperation, 3);
});

test("a client that obeys comes back when the refusal says, else after its own pause", async () => {
  for (const [obeyRetryAfter, gapMs] of [
    [true, 710],
    [false, 110],
  ] as const) {
    // prettier-ignore
    const clock = manualClock();
    const end = (count: number) =>
      count === 1 ? { status: 429, afterMs: 10, retryAfterMs: 700 } : { status: 200, afterMs: 10 };
    const { target, sent } = endingTarget(clock, end);
    const retries = { patienceMs: 1000, backOff, obeyRetryAfter };
    await runPatient(clock, { target, callers: 1, pattern: "closed", durationMs: 500, retries });
    assert.equal(Math.round(sent[1]!.atMs - sent[0]!.atMs), gapMs);
  }
});

test("after a surge the time to recover is measured; a server that never comes back says so", async () => {
  for (const [endAtMs, back] of [
    [10_000, true],
    [Infinity, false],
  ] as const) {
    // prettier-ignore
    const clock = manualClock();
    // Broken from second 4, the surge is from 4 to 16.
    const isBroken = (): boolean => clock.now() >= 4000 && clock.now() < endAtMs;
    const { target } = endingTarget(clock, () => ({ status: isBroken() ? 500 : 200, afterMs: 1 }));
    const retries = { patienceMs: 1000, attempts: 1 };
    const { goodput } = await runPatient(clock, {
      target,
      ratePerS: 100,
      pattern: "surge",
      durationMs: 32_000,
      retries,
    });
    assert.equal(goodput!.recoveryMs, back ? 0 : Infinity);
  }
});
