import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError, type Batcher, type BatcherOptions, type CallOptions } from "../../dist/index.js";
import { checkRoom, wrapBatcher } from "../../dist/internal/index.js";
import { assertCode, heldBatcher, holdForEver, numbers, watch, watchAll } from "../support/rig.js";

function refusalOf(batcher: Batcher<number, unknown>, options?: CallOptions): BatcherError | undefined {
  try {
    checkRoom(batcher as Batcher<never, unknown>, options);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof BatcherError);
    return error;
  }
}

test("where the queue is full a call is refused before its item is known, with the error of the call", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: 2 });
  watchAll(batcher, [1]);
  assert.equal(refusalOf(batcher), undefined);
  watchAll(batcher, [2]);
  const [early, call] = [refusalOf(batcher), watch(batcher(3))];
  await clock.settle();
  const { code, message, details } = assertCode(call, "QUEUE_FULL");
  assert.deepEqual([early?.code, early?.message, early?.details], [code, message, details]);
  assert.deepEqual([batcher.stats().items.rejected, batcher.pending.queued], [2, 2]);
});

test("a call that may share a place or wait for room is not refused before its item is known", () => {
  const options: BatcherOptions<number, number>[] = [{ dedupeKey: (item) => item }, { onQueueFull: "wait" }];
  for (const option of options) {
    const { batcher } = heldBatcher({ policy: holdForEver(), maxQueueSize: 1, ...option });
    watchAll(batcher, [1]);
    assert.equal(refusalOf(batcher), undefined);
  }
});

test("a call that would miss its deadline is refused before its item is known only if all items are alike", async () => {
  for (const weigh of [undefined, () => 1]) {
    const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, refuseLate: 0.5, weigh });
    watchAll(batcher, [0, 0]);
    await clock.advanceAsync(10);
    await runs[0]!.finish();
    watchAll(batcher, numbers(6));
    await clock.advanceAsync(0);
    // One batch runs and two wait before it, 10 ms each, then its own.
    const late = refusalOf(batcher, { timeoutMs: 79 });
    assert.equal(late?.details["expectedMs"], weigh === undefined ? 40 : undefined);
    assert.equal(refusalOf(batcher, { timeoutMs: 80 }), undefined);
    assert.equal(refusalOf(batcher, { timeoutMs: 79, priority: "immediate" }), undefined);
    assert.equal(refusalOf(batcher), undefined, "its deadline may be in the part that is not read yet");
  }
});

test("a wrapped batcher is full when the batcher that it wraps is full", () => {
  const { batcher } = heldBatcher({ policy: holdForEver(), maxQueueSize: 1 });
  const outer = wrapBatcher<number, number, number>(batcher, { item: (item) => item + 1 });
  assert.equal(refusalOf(outer), undefined);
  watchAll(batcher, [1]);
  assert.equal(refusalOf(outer)?.code, "QUEUE_FULL");
});
