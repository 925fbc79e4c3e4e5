import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Batcher, type BatcherOptions, type CallOptions, consume } from "../../dist/index.js";
import {
  assertCode,
  heldBatcher,
  holdForEver,
  numbers,
  statuses,
  timedBatcher,
  watch,
  watchAll,
} from "../support/rig.js";

const bulk: CallOptions = { priority: "bulk" };
const room = 8;

/** Every way to call with far more bulk items than there is room. */
const floods: Readonly<Record<string, (batcher: Batcher<number, number>, items: number[]) => unknown>> = {
  calls: (batcher, items) => watchAll(batcher, items, bulk),
  detailed: (batcher, items) => items.forEach((item) => watch(batcher.detailed(item, bulk))),
  many: (batcher, items) => watch(batcher.many(items, bulk)),
  settle: (batcher, items) => watch(batcher.settle(items, bulk)),
  "two lists": (batcher, items) =>
    [items.slice(10), items].forEach((list) => watch(batcher.settleDetailed(list, bulk))),
  map: (batcher, items) => watch(drain(batcher.map(items, bulk))),
  consume: (batcher, items) =>
    watch(
      consume(items, (item, options) => batcher(item, { ...options, ...bulk }), {
        ack: () => undefined,
        nack: () => undefined,
        prefetch: 100,
      }),
    ),
};

async function drain(results: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of results);
}

const batchers: Readonly<Record<string, BatcherOptions<number, number>>> = {
  "no option": {},
  "one tenant": { fairKey: () => "all" },
  "the tenant of the flood": { fairKey: (item) => item % 2 },
  groups: { groupKey: (item) => item % 3 },
  "order keys": { orderKey: (item) => item },
  "order keys and tenants": { orderKey: (item) => item, fairKey: (item) => item % 2 },
  "equal items": { dedupeKey: (item) => item },
  weights: { weigh: (item) => item % 5, maxBatchWeight: 20 },
  "wait for room": { onQueueFull: "wait" },
  "deadlines and refuseLate": { timeoutMs: 60_000, refuseLate: 1 },
};

for (const [way, flood] of Object.entries(floods))
  for (const [what, options] of Object.entries(batchers))
    test(`no live call is refused or waits outside for a flood of bulk by ${way}, with ${what}`, async () => {
      const { batcher, clock, runs } = heldBatcher({ policy: holdForEver(), maxQueueSize: room, ...options });
      flood(batcher, numbers(5 * room));
      await clock.settle();
      const before = batcher.pending;
      assert.ok(
        before.bulk >= Math.min(room - 2, before.queued) && before.queued === before.bulk,
        JSON.stringify(before),
      );
      const live = [
        watchAll(batcher, numbers(2, 1000)),
        watchAll(batcher, [1002], { priority: "immediate" }),
        [watch(batcher.settle(numbers(2, 1003))), watch(batcher.detailed(1005))],
      ].flat();
      await clock.settle();
      assert.deepEqual(
        live.filter(({ status }) => status === "rejected"),
        [],
      );
      const running = runs.flatMap(({ items }) => items).filter((item) => item >= 1000).length;
      assert.equal(batcher.pending.queued - batcher.pending.bulk + running, 6, "they are all in");
      void batcher.close({ graceMs: 0 });
      await clock.advanceAsync(1);
    });

test("bulk has as much room as live calls, and says whose room is full", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: 2 });
  watchAll(batcher, [1, 2]);
  const background = watchAll(batcher, [3, 4, 5], bulk);
  const live = watch(batcher(6));
  await clock.settle();
  assert.deepEqual(statuses(background), ["pending", "pending", "rejected"]);
  assert.match(assertCode(background[2], "QUEUE_FULL").message, /2 bulk items wait/);
  assert.match(assertCode(live, "QUEUE_FULL").message, /2 items wait/);
});

test("bulk items that a live call lifts out of their lane stay in their room", async () => {
  for (const options of [{ orderKey: () => "one" }, { dedupeKey: (item: number) => item % 10 }]) {
    const { batcher, clock, finishAll } = heldBatcher({ policy: holdForEver(), maxQueueSize: 3, ...options });
    watchAll(batcher, [1, 2, 3], bulk);
    watchAll(batcher, [11]);
    assert.equal(batcher.pending.bulk, 3);
    const [one, other, background] = [watch(batcher(24)), watch(batcher(25)), watch(batcher(6, bulk))];
    await clock.settle();
    assert.deepEqual(statuses([one, other]), ["pending", "pending"]);
    assertCode(background, "QUEUE_FULL");
    void batcher.flush();
    await finishAll();
    assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
  }
});

test('with onQueueFull "wait" each lane waits for its own room, and the error says how many do', async () => {
  const { batcher, clock, finishAll } = heldBatcher({ onQueueFull: "wait", maxQueueSize: 2, maxBatchSize: 1 });
  const background = watchAll(batcher, numbers(6), bulk);
  await clock.settle();
  assert.deepEqual(statuses(background), [...Array(4).fill("pending"), "rejected", "rejected"]);
  const { message, details } = assertCode(background[5], "QUEUE_FULL");
  assert.match(message, /2 bulk items wait, and 2 more calls wait for room/);
  assert.doesNotMatch(message, /onQueueFull/);
  assert.equal(details["waitingForRoom"], 2);
  const live = watchAll(batcher, numbers(2, 10));
  await finishAll();
  assert.deepEqual(statuses([...live, ...background.slice(0, 4)]), Array(6).fill("fulfilled"));
});

test("items of one order key keep their order, whatever their lanes and however many wait outside", async () => {
  const call = fc.record({
    keys: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 12 }),
    priority: fc.constantFrom<CallOptions["priority"]>("interactive", "immediate", "bulk", "bulk"),
    afterMs: fc.constantFrom(0, 0, 5, 30),
  });
  const property = fc.asyncProperty(
    fc.array(call, { minLength: 2, maxLength: 12 }),
    fc.constantFrom("wait", "reject"),
    async (calls, onQueueFull) => {
      const { batcher, clock, batches, finishAll } = timedBatcher<{ key: number; place: number }>({
        orderKey: ({ key }) => key,
        maxQueueSize: 4,
        maxBatchSize: 3,
        concurrency: 2,
        onQueueFull,
      });
      let place = 0;
      for (const { keys, priority, afterMs } of calls) {
        const items = keys.map((key) => ({ key, place: place++ }));
        if (items.length === 1) watch(batcher(items[0]!, { priority }));
        else watch(batcher.settle(items, { priority }));
        await clock.advanceAsync(afterMs);
      }
      await finishAll();
      assert.equal(batcher.pending.queued, 0);
      const last = new Map<number, number>();
      for (const { key, place: its } of batches().flat()) {
        assert.ok(its > (last.get(key) ?? -1), `item ${its} of key ${key} ran after item ${last.get(key)}`);
        last.set(key, its);
      }
    },
  );
  await fc.assert(property, { numRuns: 100, seed: 75 });
});
