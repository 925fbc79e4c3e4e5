import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "../../../dist/index.js";
import { assertResult } from "../../../../../test/support/result.mjs";
import { Gate, Rig, doubled, mute, needsNats, numbers, until, waiting } from "./rig.js";

const rig = new Rig();

// Longer than this process may be kept waiting on a machine that is busy: else items come back that nobody has lost.
const ackWaitMs = 2000;

test(
  "a worker that is gone: its items go to another, each alone, and every caller is answered",
  needsNats,
  async () => {
    const [lost, heir] = [new Gate(), new Gate()];
    heir.open();
    const { queue, front, connection } = await rig.pair(lost.run, { ackWaitMs });
    const answers = numbers(20).map((item) => front.detailed(item));
    await until(() => lost.entered.length > 0, "the first worker has a batch");
    await connection.close();
    await rig.worker(queue, heir.run, { ackWaitMs });
    const list = await Promise.all(answers);
    assertResult(list.map(({ value }) => value), doubled(20)); // prettier-ignore
    const again = list.filter(({ deliveries }) => deliveries > 1);
    assert.ok(again.length > 0);
    for (const { batchSize } of again) assert.equal(batchSize, 1, "a suspect shares no batch");
  },
);

test(
  "an item on which the model crashes is a dead letter with an id; its batch-mates are answered",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const front = await rig.frontEnd<number, number>(queue);
    await rig.worker<number, number | Error>(queue, (items) =>
      items.map((item) =>
        item === 13
          ? new BatcherError("WORKER_CRASHED", "the worker crashes on this item", { crashes: 7, items: 1 })
          : item,
      ),
    );
    await front.ready();
    const outcomes = await front.settleDetailed(numbers(32));
    const rejected = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    assert.equal(rejected.length, 1);
    assert.equal(rejected[0].code, "DEAD_LETTERED");
    assert.match(rejected[0].message, /is in the dead letters as \d+: the worker crashes/);
    const letters = await rig.deadLetters(queue);
    assert.deepEqual(letters, [rejected[0].deadLetterId]);
    await until(async () => (await front.figures())[1]!.ackPending === 0, "it is out of the queue");
  },
);

test(
  "a message past maxDeliver leaves the queue for the dead letters, and its caller gets an error",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const options = { ackWaitMs, maxDeliver: 2 };
    const front = await rig.frontEnd<number, number>(queue, options);
    let answer: Promise<number> | undefined;
    // Two workers that are cut off as soon as they have taken it; a third one, that asks for more, must not get it.
    for (let i = 0; i < 2; i++) {
      const gate = new Gate();
      const { connection } = await rig.worker(queue, gate.run, options);
      if (answer === undefined) {
        await front.ready();
        answer = front(1);
        answer.catch(() => undefined);
      }
      await until(() => gate.entered.length === 1, "it was taken");
      await connection.close();
    }
    const third = new Gate();
    await rig.worker(queue, third.run, options);
    await assert.rejects(answer!, { code: "DEAD_LETTERED", message: /given up after 2 deliveries/ });
    assert.deepEqual(third.entered, []);
    assert.equal((await rig.deadLetters(queue)).length, 1);
    await until(async () => (await waiting(front)) === 0, "it is out of the queue");
  },
);

test(
  "a worker that hangs past its ack wait: another answers, and its late reply reaches nobody",
  needsNats,
  async () => {
    const [hung, heir] = [new Gate(), new Gate()];
    heir.open();
    const { queue, front, connection } = await rig.pair(hung.run, { ackWaitMs });
    await until(async () => (await front.figures())[1]!.waitingPulls > 0, "it has asked for items");
    const unmute = mute(connection);
    const first = front.detailed(1);
    await until(() => hung.entered.length === 1, "it has the item");
    await rig.worker(queue, heir.run, { ackWaitMs });
    const { value, deliveries } = await first;
    assert.equal(value, 2);
    assert.ok(deliveries > 1);
    unmute();
    hung.open();
    await until(() => front.counts.lateReplies > 0, "the late reply comes");
    assert.equal(front.stats().items.ok, 1);
  },
);

test("items that a gone front end had published are not run a second time", needsNats, async () => {
  const queue = rig.newQueue();
  const gate = new Gate();
  const front = await rig.frontEnd<number, number>(queue, { ackWaitMs });
  const gone = await rig.connect();
  const lost = await rig.frontEnd<number, number>(queue, { connection: gone, ackWaitMs });
  const { worker } = await rig.worker(queue, gate.run, { ackWaitMs, maxBatchSize: 1, concurrency: 10 });
  await lost.ready();
  // A pause of the machine may cost a message to NATS its answer: the item goes out once more.
  const call = (item: number): Promise<unknown> =>
    lost(item).catch((error: { code?: unknown }) => {
      assert.equal(error.code, "UNAVAILABLE", String(error));
      return gone.isClosed() ? undefined : call(item);
    });
  const answers = [1, 2, 3].map(call);
  await until(() => new Set(gate.entered.flat()).size === 3, "they are at the worker");
  const runs = gate.entered.length;
  await gone.close();
  await Promise.all(answers);
  gate.open();
  // Its replies reached nobody: the items come back once, and end when nobody answers for them.
  await until(() => worker.counts.redelivered > 0, "they come back");
  await until(async () => (await front.figures())[1]!.ackPending === 0, "they are out of the queue");
  assert.equal(gate.entered.length, runs);
  assert.deepEqual(await rig.deadLetters(queue), []);
});

test(
  "kill -9 and restart of the server: what was accepted is answered, what was not fails at once",
  needsNats,
  async () => {
    const gate = new Gate();
    const { front } = await rig.pair(gate.run, { ackWaitMs }, { maxBatchSize: 4 });
    const answers = numbers(20).map((item) => front(item));
    await until(async () => (await waiting(front)) === 20, "all are accepted");
    // The queue's word about the last of them comes before the answer to a later question.
    await until(async () => (await front.figures()).length > 0, "it has come");
    await rig.nats.kill();
    await until(() => !front.isConnected, "the cut is seen");
    await assert.rejects(front(99), { code: "UNAVAILABLE", message: /down/ });
    gate.open();
    await rig.nats.restart();
    assertResult(await Promise.all(answers), doubled(20));
  },
);

test(
  "a server that comes back without the queue: what had been accepted fails, and the queue is made again",
  needsNats,
  async () => {
    const gate = new Gate();
    const { front } = await rig.pair(gate.run, { durability: "memory", ackWaitMs }, { maxBatchSize: 1 });
    const answers = [1, 2, 3].map((item) => front(item));
    const outcomes = Promise.allSettled(answers);
    await until(() => gate.entered.length === 1, "one runs");
    await until(async () => (await waiting(front)) === 3, "all are accepted");
    await rig.nats.restart();
    for (const outcome of await outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.match(String(outcome.status === "rejected" && outcome.reason.message), /lost the queue/);
    }
    gate.open();
    await until(async () => (await front(4).catch(() => 0)) === 8, "the queue serves again");
  },
);
