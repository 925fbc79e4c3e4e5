import assert from "node:assert/strict";
import { test } from "node:test";
import { windowOf } from "../../../dist/adapters/nats/front-end/turns.js";
import { Gate, Rig, needsNats, until } from "./rig.js";

const rig = new Rig();

/** Numbers from 1000 on are a flood. */
const fairKey = (item: number): string => (item < 1000 ? "quiet" : "flood");
const flood = (count: number): number[] => Array.from({ length: count }, (_, i) => 1000 + i);

test("a tenant's flood waits at its front end: another one's item passes it", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, { fairKey }, { maxBatchSize: 4 });
  const flooding = Promise.all(flood(200).map((item) => front.detailed(item)));
  await until(() => gate.entered.length > 0, "the worker is busy");
  assert.deepEqual(front.pending, { queued: 200, bulk: 0, inFlight: 0 });
  const victim = front.detailed(1);
  gate.open();
  assert.equal((await victim).value, 2);
  const results = await flooding;
  assert.deepEqual(results.map(({ value }) => value), flood(200).map((item) => 2 * item)); // prettier-ignore
  const place = (gate.entered.flat() as number[]).indexOf(1);
  assert.ok(place <= 12, `${place} items ran before it; 8 may be published for one slot of 4`);
  assert.ok(results.every(({ batchSize, queueMs, runMs }) => batchSize <= 4 && queueMs >= 0 && runMs >= 0));
  assert.ok(results.some(({ batchSize }) => batchSize === 4), "batches are full all the same"); // prettier-ignore
  assert.equal(front.stats().items.ok, 201);
});

test("a flood is refused in its own name, and the others find room", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, { fairKey, maxQueueSize: 20 }, { maxBatchSize: 4 });
  const flooding = Promise.allSettled(flood(100).map((item) => front(item)));
  const lists = [front.settle([1]), front.many([2])];
  gate.open();
  const refusals = (await flooding).flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  assert.ok(refusals.length > 0);
  for (const { code, details } of refusals) assert.deepEqual([code, details.tenant], ["QUEUE_FULL", "flood"]);
  const fulfilled = (value: number): object => ({ status: "fulfilled", value });
  assert.deepEqual(await Promise.all(lists), [[fulfilled(2)], [4]]);
  await front.drain();
  const last = front(4);
  await front.close();
  assert.equal(await last, 8);
  await assert.rejects(front(5), { code: "CLOSED" });
});

test("front ends share what the workers can run: two full batches a slot", () => {
  const worker = { slots: 2, maxBatchSize: 32 };
  assert.equal(windowOf({ workers: [worker, worker] } as never), 256);
  assert.equal(windowOf({ workers: [{ ...worker, frontEnds: 3 }, worker] } as never), 86);
  assert.equal(windowOf({ workers: [{ ...worker, maxBatchSize: 1e9 }] } as never), 10_000);
  assert.equal(windowOf({ workers: [] }), 1);
});

test("shares need tenants", needsNats, async () => {
  await assert.rejects(rig.frontEnd("q", { shareOf: () => 2 }), { message: "shareOf needs fairKey" });
});
