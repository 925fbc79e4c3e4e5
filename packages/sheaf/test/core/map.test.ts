import assert from "node:assert/strict";
import { test } from "node:test";
import { heldBatcher, numbers, timedBatcher, watch } from "../support/rig.js";

async function collect<T>(results: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const result of results) all.push(result);
  return all;
}

/** A source that counts what was pulled from it and remembers whether it was closed. */
function countingSource(length: number): { pulled: number; closed: boolean } & Iterable<number> {
  const source = {
    pulled: 0,
    closed: false,
    *[Symbol.iterator]() {
      try {
        while (source.pulled < length) yield source.pulled++;
      } finally {
        source.closed = true;
      }
    },
  };
  return source;
}

test("map yields the results in the order of its source", async () => {
  const { batcher, finishAll } = timedBatcher({ maxBatchSize: 4, concurrency: 3 });
  const all = watch(collect(batcher.map(numbers(50))));
  await finishAll();
  assert.deepEqual(all.value, numbers(50));
});

test("map takes an async iterable", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: 4 });
  async function* source() {
    for (const item of numbers(20)) {
      await Promise.resolve();
      yield item;
    }
  }
  const all = watch(collect(batcher.map(source())));
  await clock.advanceAsync(10_000);
  assert.deepEqual(all.value, numbers(20));
});

test("map of nothing yields nothing", async () => {
  const { batcher } = heldBatcher();
  assert.deepEqual(await collect(batcher.map([])), []);
});

test("map keeps order when a later batch ends first", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 2, concurrency: 3 });
  const all = watch(collect(batcher.map(numbers(6))));
  await clock.settle();
  assert.equal(runs.length, 3);
  await runs[2]!.finish();
  await runs[0]!.finish();
  await finishAll();
  assert.deepEqual(all.value, numbers(6));
});

test("map pulls only while there is room: an endless source fits in bounded memory", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: 4, maxQueueSize: 16, concurrency: 2 });
  const source = countingSource(Infinity);
  const results = batcher.map(source);
  for (let expected = 0; expected < 500; expected++) {
    const next = watch(results.next());
    while (next.status === "pending") await clock.advanceAsync(10);
    assert.deepEqual(next.value, { value: expected, done: false });
    // Queue, runs and what was run but not yet taken.
    assert.ok(source.pulled - expected <= 64, `${source.pulled} pulled, ${expected} yielded`);
    assert.ok(batcher.stats().queued <= 16);
  }
  await results.return?.();
  assert.ok(source.closed);
});

test("a map without a reader stops pulling", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: 4, maxQueueSize: 16 });
  const source = countingSource(Infinity);
  const results = batcher.map(source);
  const first = watch(results.next());
  await clock.advanceAsync(100_000);
  assert.deepEqual(first.value, { value: 0, done: false });
  assert.ok(source.pulled <= 64, `${source.pulled} pulled for one result`);
  await results.return?.();
});

test("map ends on the first error and closes its source", async () => {
  const bad = new Error("bad");
  const { batcher, clock } = timedBatcher({ maxBatchSize: 1, failure: (item) => (item === 3 ? bad : undefined) });
  const source = countingSource(1_000);
  const seen: number[] = [];
  const mapping = watch(
    (async () => {
      for await (const result of batcher.map(source)) seen.push(result);
    })(),
  );
  await clock.advanceAsync(100_000);
  assert.equal(mapping.reason, bad);
  assert.deepEqual(seen, [0, 1, 2]);
  assert.ok(source.closed);
  assert.ok(source.pulled < 1_000 || batcher.stats().queued === 0);
});

test("an error of the source ends map with that error", async () => {
  const { batcher, clock } = timedBatcher();
  const broken = new Error("source broke");
  function* source() {
    yield 1;
    throw broken;
  }
  const mapping = watch(collect(batcher.map(source())));
  await clock.advanceAsync(1_000);
  assert.equal(mapping.reason, broken);
});

test("leaving a map loop closes its source and withdraws what waits", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: 2, maxQueueSize: 8 });
  const source = countingSource(Infinity);
  const mapping = watch(
    (async () => {
      for await (const _result of batcher.map(source)) break;
    })(),
  );
  await clock.advanceAsync(10_000);
  assert.equal(mapping.status, "fulfilled");
  assert.ok(source.closed);
  assert.equal(batcher.stats().queued, 0);
  assert.equal(batcher.stats().inFlight, 0);
});

test("aborting a map ends it with the signal's reason and closes its source", async () => {
  const { batcher, clock } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 8 });
  const source = countingSource(Infinity);
  const controller = new AbortController();
  const mapping = watch(collect(batcher.map(source, { signal: controller.signal })));
  await clock.settle();
  const reason = new Error("enough");
  controller.abort(reason);
  await clock.settle();
  assert.equal(mapping.reason, reason);
  assert.ok(source.closed);
  assert.equal(batcher.stats().queued, 0);
});

test("map shares batches with other callers", async () => {
  const { batcher, batches, clock } = timedBatcher({ maxBatchSize: 4 });
  const mapping = watch(collect(batcher.map([1, 2])));
  const single = watch(batcher(3));
  await clock.advanceAsync(100);
  assert.deepEqual([mapping.value, single.value], [[1, 2], 3]);
  assert.ok(batches().length <= 2, JSON.stringify(batches()));
});

test("a map whose queue is full with other callers waits for room", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 1, maxQueueSize: 2 });
  const others = watch(batcher(100));
  await clock.settle();
  const more = watch(Promise.all([batcher(101), batcher(102)]));
  const mapping = watch(collect(batcher.map(numbers(5))));
  for (let turn = 0; turn < 10; turn++) {
    await finishAll();
    await clock.advanceAsync(10);
  }
  assert.deepEqual(mapping.value, numbers(5));
  assert.deepEqual([others.status, more.status], ["fulfilled", "fulfilled"]);
});

test("an abort ends a map whose source never answers, and closes the source", async () => {
  const { batcher } = heldBatcher();
  const abort = new AbortController();
  let closed = false;
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => undefined),
      return: async () => {
        closed = true;
        return { done: true, value: undefined };
      },
    }),
  };
  const next = watch(batcher.map(source, { signal: abort.signal }).next());
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(next.status, "pending");
  abort.abort(new Error("enough"));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(next.status, "rejected");
  assert.equal((next.reason as Error).message, "enough");
  assert.equal(closed, true);
});

test("a map that is never iterated leaves no listener on its signal", () => {
  const { signal, listeners } = countedSignal();
  heldBatcher().batcher.map([1, 2], { signal });
  assert.equal(listeners(), 0);
});

test("many maps share one listener on a signal: from the eleventh on Node would warn of a leak", async () => {
  const { signal, listeners } = countedSignal();
  const { batcher, finishAll } = heldBatcher();
  const maps = Array.from({ length: 20 }, () => watch(collect(batcher.map(numbers(3), { signal }))));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listeners(), 1);
  await finishAll();
  assert.ok(maps.every(({ status }) => status === "fulfilled"));
  assert.equal(listeners(), 0);
});

function countedSignal(): { readonly signal: AbortSignal; listeners(): number } {
  const { signal } = new AbortController();
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: unknown[]) => {
    count++;
    Reflect.apply(addEventListener, signal, args);
  };
  signal.removeEventListener = (...args: unknown[]) => {
    count--;
    Reflect.apply(removeEventListener, signal, args);
  };
  return { signal, listeners: () => count };
}
