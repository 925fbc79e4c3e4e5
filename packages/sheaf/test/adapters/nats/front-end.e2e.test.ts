// A front end is a batcher: what a batcher of this process promises holds for one whose batches run on other machines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { headers } from "@nats-io/transport-node";
import { createBatcher, fixedWindow, type BatchRecord, type Batcher } from "../../../dist/index.js";
import { natsFrontEnd } from "../../../dist/adapters/nats/index.js";
import { endsOf } from "../../support/rig.js";
import { Gate, Rig, double, doubled, needsNats, numbers, until } from "./rig.js";

const rig = new Rig();

const doubleOrRefuse = async (items: number[]): Promise<(number | Error)[]> =>
  items.map((item) => (item < 0 ? new RangeError(`not ${item}`) : item * 2));

test("any code that takes a batcher takes a front end", needsNats, async () => {
  const pair = await rig.pair(doubleOrRefuse, { maxBatchSize: 16, name: "far" }, { maxBatchSize: 16 });
  const front: Batcher<number, number> = pair.front;
  assert.equal(front.name, "far");
  assert.deepEqual(front.capacity, { maxBatchSize: 16, concurrency: Infinity });
  assert.equal(await front(1), 2);
  assert.deepEqual(await Promise.all([1, 2].map(front)), [2, 4], "a second argument that is not an object is ignored");
  assert.deepEqual(await front.many(new Set([1, 2])), [2, 4]);
  assert.deepEqual([await front.many([]), await front.settle([]), await front.settleDetailed([])], [[], [], []]);
  const [first, second] = endsOf(await front.settle([3, -3]));
  assert.deepEqual([first, second.message], [6, "not -3"]);
  const results: number[] = [];
  for await (const result of front.map(numbers(200))) results.push(result);
  assert.deepEqual(results, doubled(200));
  await assert.rejects(front.many(7 as never), TypeError);
  await front[Symbol.asyncDispose]();
  await assert.rejects(front(1), { code: "CLOSED" });
});

test("a detailed result names its batch as the record of that batch does", needsNats, async () => {
  const { front } = await rig.pair(double);
  const records: BatchRecord[] = [];
  front.subscribe((record) => records.push(record));
  const answers = await Promise.all(numbers(50).map((i) => front.detailed(i)));
  for (const { batchId, batchSize } of answers)
    assert.equal(records.find((record) => record.batchId === batchId)?.size, batchSize);
  assert.equal(front.stats().batches, records.length);
});

for (const [whose, fairKey] of [
  ["one tenant", undefined],
  ["two", (item: number) => item % 2],
] as const) {
  // prettier-ignore
  test(`figures of ${whose} tell live calls from bulk ones, once both have come`, needsNats, async () => {
    const gate = new Gate();
    const { front } = await rig.pair(gate.run, { fairKey, maxQueueSize: 8 }, { maxBatchSize: 4 });
    const bulk = numbers(30).map((item) => front(item, { priority: "bulk" }));
    const outcomes = Promise.allSettled(bulk);
    await until(() => gate.entered.length > 0, "the worker is busy");
    assert.equal(front.stats().lanes, null);
    const live = front(1);
    await until(() => (front.stats().lanes?.bulk.oldestMs ?? 0) > 0, "a bulk item has waited");
    const { rejected } = front.stats().lanes!.bulk;
    gate.open();
    await live;
    const refused = (await outcomes).filter(({ status }) => status === "rejected").length;
    assert.ok(refused > 0);
    const { lanes, latencyMs } = front.stats();
    const of = ({ queued, dispatched, rejected }: Record<"queued" | "dispatched" | "rejected", number>): number[] => [queued, dispatched, rejected];
    assert.deepEqual([of(lanes!.live), of(lanes!.bulk)], [[0, 1, 0], [0, 30 - refused, refused]]); // prettier-ignore
    assert.equal(rejected, refused);
    assert.equal(Math.max(lanes!.live.latencyMs.max, lanes!.bulk.latencyMs.max), latencyMs.max);
  });
}

test("of a bisected batch a front end learns no cost: it sees parts of it", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue);
  const records: BatchRecord[] = [];
  front.subscribe((record) => records.push(record));
  const refusing = async (items: number[]): Promise<number[]> => {
    if (items.includes(3)) throw new Error("3 is bad");
    return items;
  };
  // A batch is full before it runs, however slowly its items arrive.
  const full = { maxBatchSize: 8, policy: fixedWindow({ trigger: "size" }) };
  await rig.worker(queue, refusing, { onBatchError: "bisect", ...full });
  await front.ready();
  const settled = await front.settle([1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 7);
  const bisected = records.filter(({ size }) => size > 1);
  assert.ok(bisected.length > 0);
  for (const { outcome } of bisected) assert.equal(outcome, "partial");
  await front.many([1, 2, 4, 5, 6, 7, 8, 9]);
  assert.equal(records.at(-1)!.outcome, "ok");
});

test("map pulls no more than may be under way, and its end withdraws the waiting items", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, { maxBatchSize: 1 }, { maxBatchSize: 1 });
  let pulled = 0;
  const endless = function* (): Generator<number> {
    for (;;) yield pulled++;
  };
  const results = front.map(endless());
  const first = results.next();
  await until(() => gate.entered.length === 1, "the first runs");
  assert.equal(front.pending.queued, 2, "one in the slot, one behind it");
  gate.open();
  assert.deepEqual(await first, { done: false, value: 0 });
  await results.return();
  await front.drain();
  assert.ok(pulled < 10, `${pulled} were pulled`);
  assert.equal(front.pending.queued, 0);
});

test("drain and flush resolve when the calls before them have settled, and later calls go on", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, {}, { maxBatchSize: 1 });
  await front.drain();
  const settled: string[] = [];
  const early = front.detailed(1).then(() => settled.push("early"));
  const ends = [front.drain(), front.flush()].map((end) => end.then(() => settled.push("end")));
  await until(() => gate.entered.length === 1, "it runs");
  assert.deepEqual([front.pending, front.stats().queued], [{ queued: 1, bulk: 0, inFlight: 0 }, 1]);
  assert.deepEqual(settled, []);
  gate.open();
  await Promise.all([early, ...ends]);
  assert.deepEqual(settled, ["early", "end", "end"]);
  assert.equal(await front(2), 4);
});

test("a close with a grace cuts off what an earlier close without one waits for", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, {}, { maxBatchSize: 1 });
  const cut = assert.rejects(front(1), { code: "CLOSED", message: /cut off after 1 ms/ });
  await until(() => gate.entered.length === 1, "it runs");
  const closed = front.close();
  assert.equal(front.close({ graceMs: 1 }), closed, "always the same promise");
  await cut;
  await closed;
  gate.open();
});

test("the tag of a call is among the tags of its batch at the worker", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue);
  const tags: unknown[] = [];
  const batcher = createBatcher(double, { name: queue });
  batcher.subscribe((record) => tags.push(...(record.tags ?? [])));
  const { worker } = await rig.serve(queue, batcher);
  await Promise.all([worker.ready(), front.ready()]);
  await Promise.all([front(1, { tag: "one" }), front(2, { tag: { no: "text" } }), front.many([3, 4], { tag: "list" })]);
  assert.deepEqual(
    tags.map(String).sort((a, b) => (a < b ? -1 : 1)),
    ["list", "list", "one"],
  );
});

test(
  "with refuseLate a call is refused at once whose result would come too late, and one that allows more is not",
  needsNats,
  async () => {
    const gate = new Gate();
    const runMs = 50;
    const slow = async (items: number[]): Promise<number[]> => {
      await sleep(runMs);
      return items[0] === 0 ? [0] : gate.run(items);
    };
    const { front } = await rig.pair(slow, { refuseLate: 0.85, maxBatchSize: 1 }, { maxBatchSize: 1 });
    await front(0);
    await until(() => front.drainMs(1) !== undefined, "the worker has said how long a run takes");
    const backlog = numbers(200).map((i) => front(i + 1, { timeoutMs: 60_000 }));
    // The worker has taken one or two.
    await until(() => (front.lastFigures[1]?.pending ?? 0) >= 190, "the backlog has been counted");
    const late = front(1000, { timeoutMs: 1000 });
    const error = await late.then(
      () => assert.fail("it was taken"),
      (thrown) => thrown,
    );
    assert.equal(error.code, "QUEUE_FULL");
    assert.match(error.message, /a result is expected after \d+ ms, too late for 1000 ms/);
    assert.ok(error.details.expectedMs > 850 && error.details.drainMs > 850, JSON.stringify(error.details));
    assert.ok(error.details.queued >= 190, JSON.stringify(error.details));
    await assert.rejects(front.settleDetailed([1, 2], { timeoutMs: 1000 }), { code: "QUEUE_FULL" });
    assert.equal(front.stats().items.rejected, 3);
    const first = front(1001, { timeoutMs: 1000, priority: "immediate" });
    gate.open();
    await first.catch(({ code }) => assert.equal(code, "TIMEOUT", "nothing waits before it: it was taken"));
    await front.close({ graceMs: 0 });
    await Promise.allSettled(backlog);
  },
);

test("what a call may not ask of a front end is refused", needsNats, async () => {
  const front = await rig.frontEnd<number, number>(rig.newQueue());
  await assert.rejects(front(1, { alone: true }), { name: "RangeError", message: /alone cannot be true/ });
  await assert.rejects(front(1, { timeoutMs: 0 }), { name: "RangeError", message: /timeoutMs/ });
  await assert.rejects(front(1, { timeoutMs: 70_000 }), { name: "RangeError", message: /at most 60000 \(maxAgeMs\)/ });
  await assert.rejects(front(1, { priority: "urgent" as never }), { name: "RangeError", message: /got "urgent"/ });
  assert.throws(() => front.map([1], { priority: "high" as never }), /priority/);
});

test("ready rejects when the connection is closed before a worker came", needsNats, async () => {
  const connection = await rig.connect();
  const front = natsFrontEnd({ connection, headers, queue: rig.newQueue() });
  await connection.close();
  await assert.rejects(front.ready(), { code: "UNAVAILABLE", message: /the NATS connection is closed/ });
});
