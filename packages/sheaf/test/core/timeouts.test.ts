import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertCode,
  heldBatcher,
  holdForEver,
  numbers,
  statuses,
  watch,
  watchAll,
  type Watched,
} from "../support/rig.js";

test("past timeoutMs a waiting item is removed and never run", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ policy: holdForEver(), timeoutMs: 100 });
  const call = watch(batcher(1));
  await clock.advanceAsync(99);
  assert.equal(call.status, "pending");
  await clock.advanceAsync(1);
  const { message } = assertCode(call, "TIMEOUT");
  assert.match(message, /100/);
  assert.equal(batcher.stats().queued, 0);
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), []);
});

test("the timeout in an error is the one that was given, whatever the clock shows", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  await clock.advanceAsync(4321.7);
  assert.notEqual(clock.now() + 30_000 - clock.now(), 30_000);
  const call = watch(batcher(1, { timeoutMs: 30_000 }));
  await clock.advanceAsync(30_000);
  const { message, details } = assertCode(call, "TIMEOUT");
  assert.match(message, / 30000 ms /);
  assert.equal(details["timeoutMs"], 30_000);
});

test("past timeoutMs a running item's caller gets TIMEOUT on time and its batch-mates go on", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const hasty = watch(batcher(1, { timeoutMs: 50 }));
  const patient = watch(batcher(2));
  await clock.advanceAsync(50);
  assertCode(hasty, "TIMEOUT");
  assert.equal(runs[0]!.context.signal.aborted, false);
  await clock.advanceAsync(500);
  await runs[0]!.finish();
  assert.equal(patient.value, 2);
  assert.equal(hasty.status, "rejected");
});

test("the timeoutMs of a call goes before the batcher's", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), timeoutMs: 100 });
  const shorter = watch(batcher(1, { timeoutMs: 10 }));
  const longer = watch(batcher(2, { timeoutMs: 1_000 }));
  const own = watch(batcher(3));
  await clock.advanceAsync(10);
  assertCode(shorter, "TIMEOUT");
  await clock.advanceAsync(90);
  assertCode(own, "TIMEOUT");
  assert.equal(longer.status, "pending");
  await clock.advanceAsync(900);
  assertCode(longer, "TIMEOUT");
});

test("timeouts end in the order of their deadlines, whatever the order of the calls", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  const delays = [70, 10, 90, 30, 50, 20];
  const calls = delays.map((timeoutMs) => watch(batcher(timeoutMs, { timeoutMs })));
  const ended: number[] = [];
  for (let ms = 0; ms < 100; ms += 10) {
    await clock.advanceAsync(10);
    calls.forEach(({ status }, index) => {
      if (status === "rejected" && !ended.includes(delays[index]!)) ended.push(delays[index]!);
    });
  }
  assert.deepEqual(ended, [10, 20, 30, 50, 70, 90]);
});

test("timeoutMs counts from the call, queue wait and run together", async () => {
  const { batcher, clock, runs } = heldBatcher({ timeoutMs: 100, maxBatchSize: 1 });
  const calls = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(60);
  await runs[0]!.finish();
  await clock.advanceAsync(39);
  assert.equal(calls[1]!.status, "pending");
  await clock.advanceAsync(1);
  assertCode(calls[1], "TIMEOUT");
});

for (const before of ["flush", "drain", "abort"] as const) {
  test(`a call in the turn of a ${before} has its whole timeout, from its own arrival`, async () => {
    const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxWaitMs: 60 });
    const controller = new AbortController();
    watchAll(batcher, [1], { signal: controller.signal });
    await clock.advanceAsync(50);
    if (before === "abort") controller.abort();
    else void batcher[before]();
    const call = watch(batcher(2, { timeoutMs: 100 }));
    await clock.advanceAsync(99);
    assert.equal(call.status, "pending");
    await clock.advanceAsync(1);
    assertCode(call, "TIMEOUT");
  });
}

test("when every caller of a running batch timed out, its signal aborts", async () => {
  const { batcher, clock, runs } = heldBatcher({ timeoutMs: 100 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(99);
  assert.equal(runs[0]!.context.signal.aborted, false);
  await clock.advanceAsync(1);
  assert.equal(runs[0]!.context.signal.aborted, true);
});

test("a batch whose callers all timed out keeps its slot until it ends", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 1 });
  watch(batcher(1, { timeoutMs: 10 }));
  await clock.advanceAsync(10);
  watchAll(batcher, [2]);
  await clock.advanceAsync(100);
  assert.deepEqual(batches(), [[1]]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [[1], [2]]);
});

test("a result in time beats the timeout, and the timer is gone", async () => {
  const { batcher, clock, runs } = heldBatcher({ timeoutMs: 100 });
  const call = watch(batcher(1));
  await clock.advanceAsync(50);
  await runs[0]!.finish();
  assert.equal(call.value, 1);
  await clock.advanceAsync(1_000);
  assert.equal(batcher.stats().items.timeout, 0);
  assert.equal(clock.pending, 0);
});

test("timed out items free their queue room", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), timeoutMs: 10, maxQueueSize: 2 });
  watchAll(batcher, [1, 2]);
  assertCode(await settledNow(batcher(3), clock), "QUEUE_FULL");
  await clock.advanceAsync(10);
  const next = watch(batcher(4));
  await clock.settle();
  assert.equal(next.status, "pending");
});

test("10,000 calls with 10,000 different deadlines all end on time", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  const calls = numbers(10_000).map((item) => watch(batcher(item, { timeoutMs: 1 + ((item * 7_919) % 10_000) })));
  await clock.advanceAsync(5_000);
  const ended = statuses(calls).filter((status) => status === "rejected").length;
  assert.equal(ended, 5_000);
  await clock.advanceAsync(5_000);
  assert.ok(calls.every(({ status }) => status === "rejected"));
  assert.equal(batcher.stats().items.timeout, 10_000);
  assert.equal(batcher.stats().queued, 0);
});

for (const [where, options] of [
  ["the queue", { maxQueueSize: 5000 }],
  ["the queue and in line for it", { maxQueueSize: 1500, onQueueFull: "wait" }],
] as const) {
  test(`3,000 calls in ${where} with one deadline end in parts, between which other timers run, and never run themselves`, async () => {
    const { batcher, clock, runs } = heldBatcher({ concurrency: 1, maxBatchSize: 10, ...options });
    const calls = Array.from({ length: 3000 }, (_, item) => watch(batcher(item, { timeoutMs: 100 })));
    const open = (): number => calls.filter(({ status }) => status === "pending").length;
    await clock.advanceAsync(99);
    assert.equal(open(), 3000);
    await clock.advanceAsync(1);
    assert.ok(open() > 2000 && open() < 3000, `${open()}`);
    await clock.advanceAsync(10);
    for (const call of calls) assertCode(call, "TIMEOUT");
    assert.equal(runs.length, 1);
    assert.equal(batcher.stats().items.timeout, 3000);
  });
}

test("one 10× outlier does not make a batcher shed forever: traffic recovers within 5 batches", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 4, timeoutMs: 100, policy: undefined });
  const runFor = async (ms: number): Promise<void> => {
    const open = runs.length - 1;
    await clock.advanceAsync(ms);
    await runs[open]?.finish();
  };
  // Ten normal batches teach the estimator 20 ms a run.
  for (let batch = 0; batch < 10; batch++) {
    watchAll(batcher, numbers(4, batch * 4));
    await clock.settle();
    await runFor(20);
  }
  watchAll(batcher, numbers(4, 1_000));
  await clock.settle();
  await runFor(200);
  let fulfilledInARow = 0;
  for (let batch = 0; batch < 8; batch++) {
    const calls = watchAll(batcher, numbers(4, 2_000 + batch * 4));
    await clock.settle();
    await runFor(20);
    await clock.advanceAsync(100);
    const allServed = calls.every(({ status }) => status === "fulfilled");
    fulfilledInARow = allServed ? fulfilledInARow + 1 : 0;
    if (batch >= 5) assert.ok(allServed, `batch ${batch + 1} after the outlier: ${String(statuses(calls))}`);
  }
  assert.ok(fulfilledInARow >= 3);
});

test("what can no longer make its deadline is dropped at dispatch, before it is paid for, as a predicted TIMEOUT", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 2, timeoutMs: 100 });
  // Every run takes 60 ms; after enough of them the batcher knows.
  for (let batch = 0; batch < 30; batch++) {
    watchAll(batcher, [batch]);
    await clock.advanceAsync(60);
    await runs[batch]!.finish();
  }
  // Six items in one turn: the first two run until 60 ms, the next until 120 ms, too late.
  const calls = watchAll(batcher, numbers(6, 100));
  await clock.advanceAsync(60);
  await runs[30]!.finish();
  await clock.advanceAsync(60);
  const dropped = calls.filter(({ status }) => status === "rejected");
  for (const call of dropped) assertCode(call, "TIMEOUT");
  const ran = batches().slice(30).flat();
  assert.ok(!ran.includes(102) || !ran.includes(103), `ran ${String(ran)}`);
  const error = assertCode(calls[2], "TIMEOUT");
  assert.equal(error.details["predicted"], true);
});

/** A batcher that has learned that a run takes 10 ms an item, busy with a run that ends in 10 ms. */
async function busyLearner() {
  const rig = heldBatcher({ maxBatchSize: 8 });
  const { batcher, clock, runs } = rig;
  for (let batch = 0; batch < 40; batch++) {
    const items = numbers(1 + (batch % 8));
    watchAll(batcher, items);
    await clock.settle();
    await clock.advanceAsync(10 * items.length);
    await runs[batch]!.finish();
  }
  watchAll(batcher, [0]);
  await clock.advanceAsync(10);
  return { ...rig, endRun: () => runs[40]!.finish() };
}

test("a deadline that a smaller batch meets is no reason to drop: the most that one batch answers in time go", async () => {
  const { batcher, clock, batches, endRun, finishAll } = await busyLearner();
  // All eight would take 80 ms; the six with the most time left take 60 ms.
  const timeouts = [15, 25, 68, 72, 76, 80, 84, 88];
  const calls = timeouts.map((timeoutMs) => watch(batcher(timeoutMs, { timeoutMs })));
  await clock.settle();
  await endRun();
  assert.deepEqual(batches().at(-1), [68, 72, 76, 80, 84, 88]);
  assert.deepEqual(statuses(calls.slice(0, 2)), ["rejected", "rejected"]);
  for (const call of calls.slice(0, 2)) assert.equal(assertCode(call, "TIMEOUT").details["predicted"], true);
  await clock.advanceAsync(60);
  await finishAll();
  assert.ok(calls.slice(2).every(({ status }) => status === "fulfilled"));
});

test("of calls with one deadline, too many for one batch to answer in time, the first go and the others are dropped", async () => {
  const { batcher, clock, batches, endRun, finishAll } = await busyLearner();
  const calls = numbers(8).map((item) => watch(batcher(item, { timeoutMs: 45 })));
  await clock.settle();
  await endRun();
  assert.deepEqual(batches().at(-1), [0, 1, 2, 3]);
  await clock.advanceAsync(40);
  await finishAll();
  assert.deepEqual(statuses(calls), [...Array(4).fill("fulfilled"), ...Array(4).fill("rejected")]);
});

async function settledNow<T>(promise: Promise<T>, clock: { settle(): Promise<void> }) {
  const call = watch(promise);
  await clock.settle();
  return call;
}

test("a list that has ended leaves no timer behind: its timeout must not keep a process alive", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 3, concurrency: 2 });
  const list = watch(batcher.many(numbers(10), { timeoutMs: 60_000 }));
  await finishAll();
  assert.equal(list.status, "fulfilled");
  assert.equal(clock.pending, 0);
});

test("a call made by a listener of a run's signal keeps its deadline", async () => {
  let retry: Watched<number> | undefined;
  const { batcher, clock, runs } = heldBatcher();
  // The retry waits with this call, whose deadline has been looked at when that of the run comes.
  const waiting = watch(batcher(1, { timeoutMs: 10_000, priority: "bulk" }));
  const running = watch(batcher(2, { timeoutMs: 100, priority: "immediate", alone: true }));
  await clock.settle();
  const onAbort = (): void => void (retry = watch(batcher(3, { timeoutMs: 50, priority: "bulk" })));
  runs[0]!.context.signal.addEventListener("abort", onAbort);
  await clock.advanceAsync(100);
  assertCode(running, "TIMEOUT");
  await clock.advanceAsync(50);
  assertCode(retry, "TIMEOUT");
  assert.equal(waiting.status, "pending");
});
