import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type Batcher } from "../../../dist/index.js";
import type { NatsWorker } from "../../../dist/adapters/nats/index.js";
import { Gate, Rig, double, needsNats, until } from "./rig.js";

const rig = new Rig();
async function workerOf(queue: string, batcher: Batcher<number, number>): Promise<NatsWorker> {
  const { worker } = await rig.serve(queue, batcher);
  await worker.ready();
  return worker;
}

test("a closed batcher drains its worker: what it was given goes to another one", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue);
  const batcher = createBatcher(double);
  await workerOf(queue, batcher);
  await front.ready();
  assert.equal(await front(1), 2);
  await batcher.close();
  const answer = front(2);
  await until(() => front.workers().length === 0, "it has said that it goes");
  await rig.worker(queue, async (items: number[]) => items.map((item) => item * 3));
  assert.equal(await answer, 6);
});

test("a drain past its grace gives back what runs, and leaves the batcher open", needsNats, async () => {
  const queue = rig.newQueue();
  const gate = new Gate();
  const front = await rig.frontEnd<number, number>(queue);
  const batcher = createBatcher(gate.run, { concurrency: 1 });
  const worker = await workerOf(queue, batcher);
  await front.ready();
  const answer = front(1);
  await until(() => gate.entered.length === 1, "it runs");
  await worker.drain({ graceMs: 20 });
  await rig.worker(queue, async (items: number[]) => items.map((item) => item * 3));
  assert.equal(await answer, 3, "another worker has answered it");
  const local = batcher(2);
  gate.open();
  assert.equal(await local, 4);
  await batcher.close();
});

test("one batcher serves a queue and callers in its own process", needsNats, async () => {
  const queue = rig.newQueue();
  const gate = new Gate();
  const front = await rig.frontEnd<number, number>(queue);
  const batcher = createBatcher(gate.run, { concurrency: 1, maxBatchSize: 8 });
  const worker = await workerOf(queue, batcher);
  await front.ready();
  const local = batcher(1);
  await until(() => gate.entered.length === 1, "the local call has the slot");
  const remote = front.many([2, 3]);
  await until(async () => (await front.figures())[1]!.pending + worker.counts.delivered >= 2, "they are in the queue");
  const second = batcher(4);
  gate.open();
  assert.deepEqual(await Promise.all([local, remote, second]), [2, [4, 6], 8]);
  assert.equal(worker.counts.delivered, 2);
  assert.equal(batcher.stats().items.ok, 4);
  await batcher.close();
});
