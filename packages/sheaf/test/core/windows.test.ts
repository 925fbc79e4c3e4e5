import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, fixedWindow, type Policy } from "../../dist/index.js";
import { heldBatcher, holdForEver, numbers, timedBatcher, watch, watchAll } from "../support/rig.js";

const sizes = (batches: readonly unknown[][]): number[] => batches.map((batch) => batch.length);

test("hybrid: a full batch goes at once", async () => {
  const { batcher, clock, batches } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10, maxBatchSize: 3 });
  watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  assert.deepEqual(batches(), [[1, 2, 3]]);
});

test("hybrid: what waits goes maxWaitMs after the first item; later items never postpone it", async () => {
  const { batcher, clock, runs } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10 });
  const startedAtMs = clock.now();
  for (let item = 0; item < 4; item++) {
    watchAll(batcher, [item]);
    await clock.advanceAsync(3);
  }
  assert.deepEqual(runs[0]?.items, [0, 1, 2, 3]);
  assert.equal(runs[0].startedAtMs - startedAtMs, 10);
});

test("hybrid: the next window opens with the next item", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(10);
  await finishAll();
  await clock.advanceAsync(100);
  const secondAtMs = clock.now();
  watchAll(batcher, [2]);
  await clock.advanceAsync(9);
  assert.equal(runs.length, 1);
  await clock.advanceAsync(1);
  assert.equal(runs[1]!.startedAtMs, secondAtMs + 10);
});

test("hybrid: what a full batch leaves behind has its own window, from its own arrival", async () => {
  const { batcher, clock, runs } = heldBatcher({
    policy: fixedWindow(),
    maxWaitMs: 10,
    maxBatchSize: 2,
    concurrency: 4,
  });
  watchAll(batcher, [1]);
  await clock.advanceAsync(6);
  const startedAtMs = clock.now();
  watchAll(batcher, [2, 3]);
  await clock.advanceAsync(9);
  assert.deepEqual(
    runs.map(({ items }) => items),
    [[1, 2]],
  );
  await clock.advanceAsync(1);
  assert.deepEqual(runs[1]?.items, [3]);
  assert.equal(runs[1].startedAtMs, startedAtMs + 10);
});

test("hybrid is the default trigger", async () => {
  const { batcher, clock, batches } = heldBatcher({
    policy: fixedWindow({}),
    maxWaitMs: 5,
    maxBatchSize: 2,
    concurrency: 2,
  });
  watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  assert.deepEqual(batches(), [[1, 2]]);
  await clock.advanceAsync(5);
  assert.deepEqual(batches(), [[1, 2], [3]]);
});

test("late binding: a window that ends with no free slot goes on filling", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(10);
  watchAll(batcher, [2]);
  await clock.advanceAsync(50);
  watchAll(batcher, [3, 4]);
  await clock.advanceAsync(50);
  assert.deepEqual(batches(), [[1]]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [[1], [2, 3, 4]]);
});

test("time: every maxWaitMs all that waits goes, in ⌈n / maxBatchSize⌉ batches; a full batch does not go early", async () => {
  const { batcher, clock, batches } = heldBatcher({
    policy: fixedWindow({ trigger: "time" }),
    maxWaitMs: 10,
    maxBatchSize: 4,
    concurrency: 8,
  });
  watchAll(batcher, numbers(10));
  await clock.advanceAsync(9);
  assert.deepEqual(sizes(batches()), []);
  await clock.advanceAsync(1);
  assert.deepEqual(sizes(batches()), [4, 4, 2]);
  assert.deepEqual(batches().flat(), numbers(10));
});

test("time: items that came late in the window go with it", async () => {
  const { batcher, clock, batches } = heldBatcher({
    policy: fixedWindow({ trigger: "time" }),
    maxWaitMs: 10,
    maxBatchSize: 4,
    concurrency: 8,
  });
  watchAll(batcher, [0]);
  await clock.advanceAsync(9);
  watchAll(batcher, numbers(5, 1));
  await clock.advanceAsync(1);
  assert.deepEqual(sizes(batches()), [4, 2]);
});

test("size: only a full batch goes", async () => {
  const { batcher, clock, batches } = heldBatcher({ policy: fixedWindow({ trigger: "size" }), maxBatchSize: 3 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(1e6);
  assert.deepEqual(batches(), []);
  watchAll(batcher, [3]);
  await clock.settle();
  assert.deepEqual(batches(), [[1, 2, 3]]);
});

test("size: flush, drain, close and an immediate item send less", async () => {
  for (const end of ["flush", "drain", "close", "immediate"] as const) {
    const { batcher, clock, batches, finishAll } = heldBatcher({
      policy: fixedWindow({ trigger: "size" }),
      maxBatchSize: 3,
    });
    watchAll(batcher, [1, 2]);
    await clock.advanceAsync(100);
    if (end === "immediate") watchAll(batcher, [9], { priority: "immediate" });
    else void batcher[end]();
    await clock.settle();
    assert.deepEqual(
      [...batches()[0]!].sort((a, b) => a - b),
      end === "immediate" ? [1, 2, 9] : [1, 2],
      end,
    );
    await finishAll();
  }
});

test("size: maxWaitMs sends less, if it is given", async () => {
  const { batcher, clock, batches } = heldBatcher({
    policy: fixedWindow({ trigger: "size" }),
    maxBatchSize: 3,
    maxWaitMs: 20,
  });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(19);
  assert.deepEqual(batches(), []);
  await clock.advanceAsync(1);
  assert.deepEqual(batches(), [[1, 2]]);
});

for (const trigger of ["hybrid", "time"] as const) {
  test(`fixedWindow({ trigger: "${trigger}" }) without maxWaitMs is a RangeError that names maxWaitMs`, () => {
    assert.throws(() => createBatcher((items: number[]) => items, { policy: fixedWindow({ trigger }) }), {
      name: "RangeError",
      message: /maxWaitMs/,
    });
  });
}

test("an unknown trigger is a RangeError that shows what it got", () => {
  assert.throws(() => fixedWindow({ trigger: "sometimes" as never }), {
    name: "RangeError",
    message: /trigger.*"sometimes"/,
  });
});

test("whatever the policy says, the oldest item is not held longer than maxWaitMs while a slot is free", async () => {
  for (const decide of [() => "wait" as const, () => ({ askAgainAtMs: Infinity }), () => ({ askAgainAtMs: 1e12 })]) {
    const { batcher, clock, runs } = heldBatcher({ policy: { name: "stubborn", decide }, maxWaitMs: 25 });
    const startedAtMs = clock.now();
    watchAll(batcher, [1]);
    await clock.advanceAsync(20);
    watchAll(batcher, [2]);
    await clock.advanceAsync(100);
    assert.deepEqual(runs[0]?.items, [1, 2]);
    assert.equal(runs[0].startedAtMs - startedAtMs, 25);
  }
});

test("without maxWaitMs a policy may hold until something changes", async () => {
  const { batcher, clock, batches } = heldBatcher({ policy: holdForEver() });
  watchAll(batcher, [1]);
  await clock.advanceAsync(1e9);
  assert.deepEqual(batches(), []);
});

test("a policy is asked again at askAgainAtMs", async () => {
  let endAtMs = 0;
  const policy: Policy = {
    name: "until",
    decide: ({ nowMs, waiting }) => (nowMs >= endAtMs ? { run: waiting } : { askAgainAtMs: endAtMs }),
  };
  const { batcher, clock, runs } = heldBatcher({ policy });
  endAtMs = clock.now() + 40;
  watchAll(batcher, [1]);
  await clock.advanceAsync(39);
  assert.equal(runs.length, 0);
  await clock.advanceAsync(1);
  assert.equal(runs[0]!.startedAtMs, endAtMs);
});

test("a policy may run fewer than wait; it is asked about the rest while a slot is free", async () => {
  const policy: Policy = { name: "pairs", decide: () => ({ run: 2 }) };
  const { batcher, clock, batches } = heldBatcher({ policy, concurrency: 2 });
  watchAll(batcher, [1, 2, 3, 4, 5]);
  await clock.settle();
  assert.deepEqual(batches(), [
    [1, 2],
    [3, 4],
  ]);
});

for (const run of [0, -3, Number.NaN, 0.5, 1e9, Infinity]) {
  test(`a policy that says { run: ${run} } gets a batch of 1 … maxBatchSize, and no call hangs`, async () => {
    const { batcher, finishAll, batches } = heldBatcher({
      policy: { name: "odd", decide: () => ({ run }) },
      maxBatchSize: 4,
    });
    const calls = watchAll(batcher, numbers(9));
    await finishAll();
    assert.ok(calls.every(({ status }) => status === "fulfilled"));
    assert.ok(
      sizes(batches()).every((size) => size >= 1 && size <= 4),
      String(sizes(batches())),
    );
  });
}

for (const part of ["decide", "arrived", "observe"] as const) {
  test(`a policy whose ${part} throws falls back to greedy and warns once`, async (t) => {
    const warn = t.mock.method(console, "warn", () => {});
    const policy: Policy = {
      name: "broken",
      decide: ({ waiting }) => ({ run: waiting }),
      [part]: () => {
        throw new Error("policy bug");
      },
    };
    const { batcher, finishAll } = heldBatcher({ policy, maxBatchSize: 2 });
    const calls = watchAll(batcher, numbers(7));
    await finishAll();
    calls.push(...watchAll(batcher, numbers(3)));
    await finishAll();
    assert.ok(calls.every(({ status }) => status === "fulfilled"));
    assert.equal(warn.mock.callCount(), 1);
  });
}

test("a policy that answers nonsense falls back to greedy, with one warning that shows the answer", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  for (const answer of [undefined, null, {}, "now", 7, { run: "2" }, { askAgainAt: 5 }]) {
    warn.mock.resetCalls();
    const { batcher, finishAll } = heldBatcher({ policy: { name: "nonsense", decide: () => answer as never } });
    const calls = watchAll(batcher, numbers(3));
    await finishAll();
    assert.ok(
      calls.every(({ status }) => status === "fulfilled"),
      JSON.stringify(answer),
    );
    assert.equal(warn.mock.callCount(), 1);
    assert.match(String(warn.mock.calls[0]!.arguments[1]), /decide's result must be \{ run: number \}.*, got /);
  }
});

test("a policy instance belongs to one batcher: a second use is a TypeError", () => {
  const policy = fixedWindow();
  createBatcher((items: number[]) => items, { policy, maxWaitMs: 5 });
  assert.throws(() => createBatcher((items: number[]) => items, { policy, maxWaitMs: 5 }), TypeError);
});

test("with an item waiting and a slot free, either a batch starts or a timer is armed", async () => {
  const { batcher, clock, runs } = heldBatcher({
    policy: fixedWindow(),
    maxWaitMs: 10,
    concurrency: 2,
    maxBatchSize: 2,
  });
  for (let item = 0; item < 20; item++) {
    watchAll(batcher, [item]);
    await clock.settle();
    if (batcher.stats().queued > 0 && batcher.stats().inFlight < 2) assert.ok(clock.pending > 0, `item ${item}`);
    await clock.advanceAsync(item % 7);
    if (runs[item % 3] !== undefined) await runs[item % 3]!.finish();
  }
});

test("the default policy dispatches a lone call without a window", async () => {
  const { batcher, clock } = timedBatcher({ policy: undefined, fixedMs: 10 });
  const call = watch(batcher(1));
  await clock.advanceAsync(10);
  assert.equal(call.status, "fulfilled");
});

test("the default policy puts the calls of one turn in one batch", async () => {
  const { batcher, finishAll, batches } = timedBatcher({ policy: undefined });
  const calls = watchAll(batcher, numbers(16));
  await finishAll();
  assert.ok(calls.every(({ status }) => status === "fulfilled"));
  assert.deepEqual(batches(), [numbers(16)]);
});
