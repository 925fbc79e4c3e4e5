// What needs no Redis; test/integration/bullmq.test.mjs has the rest.
import assert from "node:assert/strict";
import { test } from "node:test";
import { batchProcessor } from "../../dist/adapters/bullmq.js";
import { fixedWindow, greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, statuses, watch } from "../support/rig.ts";

interface Job {
  readonly data: number;
  readonly stalledCounter?: number;
}

const echo = async (jobs: Job[]): Promise<number[]> => jobs.map(({ data }) => data);
const job = (data: number, stalledCounter = 0): Job => ({ data, stalledCounter });

test("the worker's concurrency fills the batches in flight and the next", () => {
  assert.equal(batchProcessor(echo, { maxBatchSize: 50 }).concurrency, 100);
  assert.equal(batchProcessor(echo, { maxBatchSize: 10, concurrency: 3 }).concurrency, 40);
  assert.equal(batchProcessor(echo).concurrency, 64);
  for (const options of [{ maxBatchSize: Infinity }, { concurrency: Infinity }])
    assert.throws(() => batchProcessor(echo, options), /RangeError: maxBatchSize and concurrency must be finite/);
});

test("the processor has a third parameter, without which BullMQ hands it no signal", () => {
  assert.equal(batchProcessor(echo).process.length, 3);
});

test("a cancelled job that waits is never run", async () => {
  const clock = manualClock();
  const ran: number[] = [];
  const { process } = batchProcessor(
    (jobs: Job[]) => {
      ran.push(...jobs.map(({ data }) => data));
      return jobs.map(({ data }) => data);
    },
    { clock, policy: fixedWindow(), maxWaitMs: 50 },
  );
  const cancelled = new AbortController();
  const calls = [watch(process(job(1), "token", cancelled.signal)), watch(process(job(2), "token"))];
  await clock.advanceAsync(10);
  cancelled.abort(new Error("cancelled"));
  await clock.advanceAsync(50);
  assert.deepEqual([statuses(calls), ran], [["rejected", "fulfilled"], [2]]);
});

test("a job that has stalled before runs alone; the others share their batch", async () => {
  const clock = manualClock();
  const batches: number[][] = [];
  const { process } = batchProcessor(
    async (jobs: Job[]) => {
      batches.push(jobs.map(({ data }) => data));
      return jobs.map(({ data }) => data);
    },
    { clock, policy: greedy(), groupKey: () => "all" },
  );
  const calls = [job(1), job(2, 1), job(3), job(4, 2), job(5)].map((each) => watch(process(each, "token")));
  await clock.settle();
  assert.deepEqual(new Set(statuses(calls)), new Set(["fulfilled"]));
  assert.deepEqual(
    batches.map((batch) => batch.join()).toSorted((a, b) => a.localeCompare(b)),
    ["1,3,5", "2", "4"], // prettier-ignore
  );
});

test("more jobs than the queue holds wait; none fails because it was fetched early", async () => {
  const clock = manualClock();
  const { process } = batchProcessor(echo, { clock, maxBatchSize: 2, maxQueueSize: 2 });
  const calls = Array.from({ length: 4 }, (_, n) => watch(process(job(n), "token")));
  await clock.settle();
  assert.deepEqual(new Set(statuses(calls)), new Set(["fulfilled"]));
});

test("close sends what waits, lets the worker finish, and takes what it was still fetching", async () => {
  const clock = manualClock();
  const order: string[] = [];
  const batched = batchProcessor(
    async (jobs: Job[]) => {
      order.push(`run ${jobs.map(({ data }) => data).join()}`);
      return jobs.map(({ data }) => data);
    },
    { clock, policy: fixedWindow({ trigger: "size" }), maxBatchSize: 10 },
  );
  const waiting = watch(batched.process(job(1), "token"));
  await clock.settle();
  assert.equal(waiting.status, "pending");
  const fetched: { call?: ReturnType<typeof watch<number>> } = {};
  const closed = watch(
    batched.close({
      close: async () => {
        order.push("worker closing");
        await Promise.resolve();
        fetched.call = watch(batched.process(job(2), "token"));
        while (fetched.call.status === "pending") await clock.settle();
        order.push("worker closed");
      },
    }),
  );
  while (closed.status === "pending") await clock.settle();
  assert.deepEqual([waiting.value, fetched.call?.value], [1, 2]);
  assert.equal(order.at(-1), "worker closed");
  const late = watch(batched.process(job(3), "token"));
  await clock.settle();
  assertCode(late, "CLOSED");
});
