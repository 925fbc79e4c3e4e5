import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock, virtualClock } from "../../dist/testing/index.js";

const chain = async (length: number): Promise<void> => {
  for (let i = 0; i < length; i++) await undefined;
};

test("a virtual clock jumps from timer to timer, in order of time, then of setting", async () => {
  const clock = virtualClock();
  const fired: string[] = [];
  clock.after(1000, () => fired.push(`c ${clock.now()}`));
  clock.after(5, () => fired.push(`a ${clock.now()}`));
  clock.after(1000, () => fired.push(`d ${clock.now()}`));
  clock.at(7.25, () => fired.push(`b ${clock.now()}`));
  await clock.idle();
  assert.deepEqual(fired, ["a 5", "b 7.25", "c 1000", "d 1000"]);
  assert.equal(clock.events, 4);
});

test("between two virtual timers every chain of promises runs to its end", async () => {
  const clock = virtualClock();
  const seen: number[] = [];
  clock.after(1, () => void chain(500).then(() => seen.push(clock.now())));
  clock.after(2, () => seen.push(-2));
  await clock.idle();
  assert.deepEqual(seen, [1, -2]);
});

test("after(0) comes after what is due already, and after the promises of this moment", async () => {
  const clock = virtualClock();
  const order: string[] = [];
  clock.after(3, () => {
    clock.after(0, () => order.push("end of turn"));
    void chain(20).then(() => order.push("promise"));
  });
  clock.after(3, () => order.push("due too"));
  await clock.idle();
  assert.deepEqual(order, ["promise", "due too", "end of turn"]);
  assert.equal(clock.now(), 3);
});

test("a cancelled timer never fires and does not move the clock", async () => {
  const clock = virtualClock();
  const cancel = clock.after(50, () => assert.fail("cancelled"));
  clock.after(10, () => {
    cancel();
    cancel();
  });
  await clock.idle();
  assert.equal(clock.now(), 10);
});

test("a virtual clock can be used again after it was idle, and never goes back", async () => {
  const clock = virtualClock({ startAtMs: 100 });
  await clock.sleep(5);
  await clock.idle();
  clock.at(3, () => assert.equal(clock.now(), 105));
  await clock.sleep(-4);
  assert.equal(clock.now(), 105);
  assert.throws(() => clock.after(Number.NaN, () => {}), RangeError);
});

test("a long virtual run lets the event loop breathe", async () => {
  const clock = virtualClock();
  let turns = 0;
  let left = 20_000;
  const again = (): void => void (left-- > 0 && clock.after(1, again));
  again();
  let done = false;
  const count = (): void => {
    turns++;
    if (!done) setImmediate(count);
  };
  setImmediate(count);
  await clock.idle();
  done = true;
  assert.equal(clock.now(), 20_000);
  assert.ok(turns >= 10, `${turns} turns`);
});

test("a manual clock stands still until it is advanced, then fires in order, each timer at its moment", () => {
  const clock = manualClock();
  const fired: number[] = [];
  clock.after(10, () => fired.push(clock.now()));
  clock.after(5, () => clock.after(2, () => fired.push(clock.now())));
  assert.equal(clock.nextAtMs(), 5);
  clock.advance(6);
  assert.deepEqual([fired, clock.now(), clock.pending], [[], 6, 2]);
  clock.advanceTo(10);
  assert.deepEqual([fired, clock.now(), clock.pending, clock.nextAtMs()], [[7, 10], 10, 0, Infinity]);
  assert.throws(() => clock.advance(-1), /A clock only moves forward: it is at 10 ms, got 9/);
  assert.throws(() => clock.advanceTo(Infinity), RangeError);
});

test("a manual clock's async steps settle promises before, between and after the timers", async () => {
  const clock = manualClock();
  const seen: string[] = [];
  void chain(50).then(() => clock.after(3, () => void chain(50).then(() => seen.push(`timer ${clock.now()}`))));
  clock.after(4, () => seen.push(`later ${clock.now()}`));
  await clock.advanceAsync(4);
  assert.deepEqual(seen, ["timer 3", "later 4"]);
});

test("settle fires what is due now and nothing else", async () => {
  const clock = manualClock();
  let fired = 0;
  clock.after(0, () => clock.after(0, () => fired++));
  clock.after(0.1, () => assert.fail("not due"));
  await clock.settle();
  assert.equal(fired, 1);
});

test("ten thousand timers in random order, a third cancelled, fire in order", async () => {
  const clock = virtualClock();
  let state = 12345;
  const next = (): number => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) / 2 ** 32;
  const moments: number[] = [];
  let expected = 0;
  for (let i = 0; i < 10_000; i++) {
    const cancel = clock.after(Math.floor(next() * 500), () => moments.push(clock.now()));
    if (i % 3 === 0) cancel();
    else expected++;
  }
  await clock.idle();
  assert.equal(moments.length, expected);
  assert.ok(moments.every((ms, i) => i === 0 || ms >= moments[i - 1]!));
});
