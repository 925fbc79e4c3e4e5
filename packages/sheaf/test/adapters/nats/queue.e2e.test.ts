import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError, createBatcher } from "../../../dist/index.js";
import { natsFrontEnd, natsWorker } from "../../../dist/adapters/nats/index.js";
import { assertResult } from "../../../../../test/support/result.mjs";
import { codesOf, endsOf } from "../../support/rig.js";
import { Gate, Rig, double, doubled, needsNats, numbers, until, waiting } from "./rig.js";

const rig = new Rig();

for (const durability of ["file", "memory", "none"] as const) {
  test(
    `two front ends and two workers: every reply reaches its caller (durability ${durability})`,
    needsNats,
    async () => {
      const queue = rig.newQueue();
      const fronts = await Promise.all([1, 2].map(() => rig.frontEnd<number, number>(queue, { durability })));
      const workers = await Promise.all([1, 2].map(() => rig.worker(queue, double, { durability })));
      await Promise.all(fronts.map((front) => front.ready()));
      await until(() => fronts.every((front) => front.workers().length === 2), "both workers are seen");
      const items = numbers(500);
      const answers = await Promise.all(
        fronts.map((front, f) => Promise.all(items.map((i) => front.detailed(i + f * 1000)))),
      );
      for (const [f, list] of answers.entries())
        assertResult(
          list.map(({ value }) => value),
          items.map((i) => 2 * (i + f * 1000)),
        );
      assert.ok(
        answers.flat().some(({ batchSize }) => batchSize > 1),
        "batches are shared",
      );
      const delivered = workers.map(({ worker }) => worker.counts.delivered);
      assertResult(delivered[0]! + delivered[1]!, 1000, "nothing ran twice");
      for (const front of fronts) {
        const { items: tally, batches } = front.stats();
        assert.deepEqual(tally, { ok: 500, error: 0, timeout: 0, aborted: 0, rejected: 0 });
        assert.ok(batches >= 500 / 32);
      }
    },
  );
}

test("a model's error reaches its own caller only, with its code", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue);
  const refuse = (item: number): Error => Object.assign(new RangeError(`not ${item}`), { code: "ODD", status: 422 });
  await rig.worker<number, number | Error>(queue, (items) => items.map((item) => (item % 2 ? refuse(item) : item)));
  await front.ready();
  const outcomes = await front.settle([0, 1, 2, 3]);
  assert.deepEqual(codesOf(outcomes), [0, "ODD", 2, "ODD"]);
  const { name, message, code, status } = endsOf(outcomes)[1];
  assert.deepEqual({ name, message, code, status }, { name: "RangeError", message: "not 1", code: "ODD", status: 422 });
  await assert.rejects(front.many([2, 3]), { message: "not 3" });
});

test(
  "a full lane refuses at once with QUEUE_FULL, several items whole, and takes more when there is room",
  needsNats,
  async () => {
    const gate = new Gate();
    const { front } = await rig.pair(gate.run, { maxQueueSize: 4 }, { maxBatchSize: 1, maxQueueSize: 4 });
    const running = front(0);
    await until(() => gate.entered.length === 1, "the first runs");
    const waiting = [1, 2].map((item) => front(item));
    await until(async () => (await front.figures())[1]!.pending === 2, "two wait");
    await assert.rejects(front.settleDetailed([3, 4]), { code: "QUEUE_FULL", message: /lane is full \(4 items\)/ });
    // The one of them that had found room gave it back.
    await until(async () => (await front.figures())[1]!.pending === 2, "two wait again");
    const last = front(5);
    await assert.rejects(front(6), (error) => error instanceof BatcherError && error.code === "QUEUE_FULL");
    const inAnotherLane = front(7, { priority: "bulk" });
    gate.open();
    assert.deepEqual(await Promise.all([running, ...waiting, last, inAnotherLane]), [0, 2, 4, 10, 14]);
  },
);

test("the highest lane goes first", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, {}, { maxBatchSize: 1 });
  const first = front(0);
  await until(() => gate.entered.length === 1, "the slot is taken");
  const bulk = front(1, { priority: "bulk" });
  const interactive = front(2);
  const immediate = front(3, { priority: "immediate" });
  await until(async () => {
    const figures = await front.figures();
    return figures.every(({ ackPending }, lane) => ackPending === [1, 2, 1][lane]);
  }, "the worker has all");
  gate.open();
  await Promise.all([first, interactive, immediate, bulk]);
  assert.deepEqual(gate.entered, [[0], [3], [2], [1]]);
});

test("an aborted item that waits is never run, and its room is free", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, {}, { maxBatchSize: 1 });
  const first = front(0);
  await until(() => gate.entered.length === 1, "the slot is taken");
  const controller = new AbortController();
  const gone = front(1, { signal: controller.signal });
  await until(async () => (await front.figures())[1]!.pending === 1, "it waits");
  controller.abort(new Error("no longer"));
  await assert.rejects(gone, { message: "no longer" });
  await until(async () => (await front.figures())[1]!.pending === 0, "its room is free");
  const last = front(2);
  gate.open();
  assert.deepEqual(await Promise.all([first, last]), [0, 4]);
  assert.deepEqual(gate.entered, [[0], [2]]);
  assert.equal(front.stats().items.aborted, 1);
});

test("past its deadline a call gets TIMEOUT, and the item is not run", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run, {}, { maxBatchSize: 1 });
  const first = front(0);
  await until(() => gate.entered.length === 1, "the slot is taken");
  await assert.rejects(front(1, { timeoutMs: 60 }), { code: "TIMEOUT", message: /within 60 ms/ });
  await until(async () => (await waiting(front)) === 1, "it has left the queue");
  gate.open();
  assert.equal(await first, 0);
  assert.equal(await front(2), 4);
  assert.deepEqual(gate.entered, [[0], [2]]);
});

test(
  "what is larger than the server's max_payload is refused before it is sent, and such a result is an error",
  needsNats,
  async () => {
    const { front } = await rig.pair<number | Uint8Array, unknown>((items) =>
      items.map((bytes) => new Uint8Array(bytes as number)),
    );
    await assert.rejects(front(new Uint8Array(1_048_576)), { code: "ITEM_TOO_LARGE", message: /max_payload/ });
    await assert.rejects(front(1_048_576), { message: /result takes 1048\d\d\d bytes, the NATS server at most/ });
    assert.equal(((await front(1_000_000)) as Uint8Array).length, 1_000_000);
  },
);

test("without a worker durability none fails at once", needsNats, async () => {
  const front = await rig.frontEnd<number, number>(rig.newQueue(), { durability: "none" });
  await assert.rejects(front(1), { name: "NatsQueueError", code: "UNAVAILABLE", message: /no worker listens/ });
});

for (const durability of ["file", "none"] as const)
  test(`an item never runs at a worker that serves something else (durability ${durability})`, needsNats, async () => {
    const queue = rig.newQueue();
    const [flats, sharps] = await Promise.all(
      ["flats", "sharps"].map((serves) => rig.frontEnd<number, number>(queue, { durability, serves })),
    );
    const anything = await rig.frontEnd<number, number>(queue, { durability });
    await rig.worker(queue, double, { durability, serves: "flats" });
    await Promise.all([flats!.ready(), anything.ready()]);
    await until(() => sharps!.otherWorkers().length === 1, "it knows the worker");
    assert.deepEqual(await Promise.all([flats!(1), anything(2)]), [2, 4]);
    await assert.rejects(sharps!(3), { code: "UNAVAILABLE", message: /workers of this name serve another model/ });
  });

test("a drained worker finishes what it has, gives back the rest, and another one answers it", needsNats, async () => {
  const [slow, quick] = [new Gate(), new Gate()];
  quick.open();
  const { queue, front, worker } = await rig.pair(slow.run, {}, { maxBatchSize: 4 });
  const answers = numbers(40).map((item) => front.detailed(item));
  await until(() => slow.entered.length === 1, "a batch runs");
  const drained = worker.drain();
  await until(() => front.workers().length === 0, "it has said that it goes");
  await rig.worker(queue, quick.run);
  slow.open();
  await drained;
  assertResult((await Promise.all(answers)).map(({ value }) => value), doubled(40)); // prettier-ignore
  assertResult(slow.entered.flat().length + quick.entered.flat().length, 40, "nothing ran twice");
  assert.ok(slow.entered.flat().length <= 8);
});

test("a closed front end takes no more, and waits for what is out", needsNats, async () => {
  const gate = new Gate();
  const { front } = await rig.pair(gate.run);
  const answer = front(1);
  await until(() => gate.entered.length === 1, "it runs");
  const closed = front.close();
  await assert.rejects(front(2), { code: "CLOSED" });
  gate.open();
  assert.equal(await answer, 2);
  await closed;
});

test("wrong options are refused with what they got", () => {
  const connection = { publish: () => undefined, subscribe: () => undefined };
  for (const [wrong, message] of [
    [{ connection: {} }, /await connect/],
    [{ headers: undefined }, /headers/],
    [{ queue: "" }, /got ""/],
    [{ maxQueueSize: 0 }, /maxQueueSize must be an integer >= 1, got 0/],
    [{ durability: "disk" }, /got "disk"/],
    [{ timeoutMs: 90_000 }, /at most maxAgeMs \(60000\), got 90000/],
    [{ refuseLate: 0 }, /refuseLate must be a number > 0 and <= 1, got 0/],
    [{ ackWaitMs: 10 }, /ackWaitMs must be an integer >= 300/],
  ] as const) {
    const options = { connection, headers: () => undefined, queue: "q", ...wrong } as never;
    const make = "ackWaitMs" in wrong ? () => natsWorker(createBatcher(double), options) : () => natsFrontEnd(options);
    assert.throws(make, { name: /^(Type|Range)Error$/, message });
  }
});
