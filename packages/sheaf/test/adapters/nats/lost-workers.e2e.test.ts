import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, type Clock } from "../../../dist/core/runtime/runtime.js";
import { BatcherError } from "../../../dist/index.js";
import { assertResult } from "../../../../../test/support/result.mjs";
import { endsOf } from "../../support/rig.js";
import { Gate, Rig, mute, needsNats, numbers, until } from "./rig.js";

const rig = new Rig();

// Longer than a call waits: what comes back does not come back by it.
const ackWaitMs = 120_000;

test("a worker that is killed: its items run elsewhere long before the ack wait", needsNats, async () => {
  const [lost, other, third] = [new Gate(), new Gate(), new Gate()];
  const options = { maxBatchSize: 1, concurrency: 3 };
  const { queue, front, connection } = await rig.pair(lost.run, { ackWaitMs }, options);
  const atLost = Promise.all([1, 2, 3].map((item) => front.detailed(item)));
  await until(() => lost.entered.flat().length === 3, "the first worker has them");
  await rig.worker(queue, other.run, { ackWaitMs, maxBatchSize: 1, concurrency: 2 });
  const atOther = Promise.all([4, 5].map((item) => front.detailed(item)));
  await until(() => other.entered.flat().length === 2, "the second worker has these");
  await rig.worker(queue, third.run, { ackWaitMs, maxBatchSize: 4 });
  await until(() => front.workers().length === 3, "all are known");
  await connection.close();
  await until(() => front.workers().length === 2, "it is known to be gone");
  other.open();
  third.open();
  assert.deepEqual(
    (await atOther).map(({ value, deliveries }) => [value, deliveries]),
    [
      [8, 1],
      [10, 1],
    ],
  );
  const again = await atLost;
  assertResult(again.map(({ value }) => value), [2, 4, 6]); // prettier-ignore
  for (const { batchSize, deliveries } of again) assert.deepEqual([batchSize, deliveries], [1, 2]);
  assertResult(
    ([...other.entered.flat(), ...third.entered.flat()] as number[]).sort((a, b) => a - b),
    [1, 2, 3, 4, 5],
    "each runs once at the workers that are left",
  );
});

test(
  "the last worker of two serves the others, and keeps what may end it until there is a second one",
  needsNats,
  async () => {
    const [lost, other, heir] = [new Gate(), new Gate(), new Gate()];
    const options = { ackWaitMs, maxBatchSize: 1, concurrency: 3 };
    // Half of it is longer than this test may take on a machine that is busy.
    const { queue, front, connection } = await rig.pair(lost.run, { ackWaitMs, timeoutMs: 60_000 }, options);
    const suspects = Promise.all([1, 2, 3].map((item) => front(item)));
    await until(() => lost.entered.flat().length === 3, "the first worker has them");
    const { worker } = await rig.worker(queue, other.run, options);
    other.open();
    // A front end that starts asks all workers to report: now each front end knows that both serve.
    const asking = await rig.frontEnd<number, number>(queue, { ackWaitMs });
    await until(() => asking.workers().length === 2, "both report");
    await connection.close();
    await until(() => worker.counts.redelivered === 3, "the second one has them");
    for (let item = 4; item < 15; item++) assert.equal(await front(item), 2 * item);
    assert.deepEqual(
      other.entered.flat(),
      Array.from({ length: 11 }, (_, i) => 4 + i),
      "and runs others only",
    );
    heir.open();
    await rig.worker(queue, heir.run, options);
    assert.deepEqual(await suspects, [2, 4, 6]);
  },
);

test(
  "the last worker of two, whose batches run in a process of their own, runs what may have ended the other one at once",
  needsNats,
  async () => {
    const [lost, other] = [new Gate(), new Gate()];
    const options = { ackWaitMs, maxBatchSize: 8, concurrency: 1, isIsolated: true };
    const { queue, front, connection } = await rig.pair(lost.run, { ackWaitMs, timeoutMs: 60_000 }, options);
    const suspects = Promise.allSettled([1, 2, 3].map((item) => front.detailed(item)));
    await until(() => lost.entered.flat().length > 0, "the first worker has one");
    // As a process does that an item crashes.
    const run = async (items: number[]): Promise<number[]> => {
      if (items.includes(2)) throw new BatcherError("WORKER_CRASHED", "The worker crashed.", { items: items.length });
      return other.run(items);
    };
    other.open();
    await rig.worker(queue, run, options);
    const asking = await rig.frontEnd<number, number>(queue, { ackWaitMs });
    await until(() => asking.workers().length === 2, "both report");
    await connection.close();
    const [first, second, third] = endsOf(await suspects);
    assert.match(String(second), /given up after \d deliveries/);
    assert.deepEqual([first.value, third.value], [2, 6]);
    for (let item = 4; item < 15; item++) assert.equal(await front(item), 2 * item);
  },
);

test("a worker that hangs keeps its items, also where another one is lost", needsNats, async () => {
  const [hung, lost, other] = [new Gate(), new Gate(), new Gate()];
  const options = { ackWaitMs, maxBatchSize: 1 };
  const { queue, front, connection: hanging } = await rig.pair(hung.run, { ackWaitMs }, options);
  const first = front.detailed(1);
  await until(() => hung.entered.length === 1, "one hangs");
  const unmute = mute(hanging);
  const { connection } = await rig.worker(queue, lost.run, options);
  const second = front.detailed(2);
  second.catch(() => undefined);
  await until(() => lost.entered.length === 1, "one is at the worker that will be lost");
  other.open();
  const { worker } = await rig.worker(queue, other.run, options);
  await connection.close();
  await until(() => !front.workers().some(({ slots }) => slots === 0) && front.workers().length <= 2, "it is lost");
  assert.equal((await front.detailed(3)).value, 6);
  assert.equal(worker.counts.redelivered, 0, "nothing of the one that hangs was given out again");
  unmute();
  hung.open();
  assert.equal((await first).deliveries, 1);
  assert.equal((await second).deliveries, 2, "then it is known what the lost one had");
});

test(
  "an item that ends its workers is a dead letter after three of them; its batch-mates are answered",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const front = await rig.frontEnd<number, number>(queue, { ackWaitMs });
    let deaths = 0;
    const start = async (): Promise<void> => {
      const run = async (items: number[]): Promise<number[]> => {
        if (!items.includes(13)) return items;
        deaths++;
        // As a supervisor does.
        void connection.close().then(start);
        return new Promise(() => undefined);
      };
      const { connection } = await rig.worker<number, number>(queue, run, { ackWaitMs, maxBatchSize: 32 });
    };
    await start();
    await start();
    await front.ready();
    const outcomes = await front.settleDetailed(numbers(32));
    const rejected = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    assert.equal(rejected.length, 1);
    assert.equal(rejected[0].code, "DEAD_LETTERED");
    assert.match(rejected[0].message, /2 workers ended while they ran this item alone/);
    assert.ok(deaths <= 3, `${deaths} workers ended`);
    assert.deepEqual(await rig.deadLetters(queue), [rejected[0].deadLetterId]);
    await until(async () => (await front.figures())[1]!.ackPending === 0, "it is out of the queue");
  },
);

test("workers that ended with an item are counted, though the queue gave it to others first", needsNats, async () => {
  const queue = rig.newQueue();
  // As on a machine that stands still for longer than the ack wait: the front end's timers are late.
  const late: (() => void)[] = [];
  let isLate = false;
  const clock: Clock = {
    now: () => systemClock.now(),
    after: (ms, run) => systemClock.after(ms, () => void (isLate ? late.push(run) : run())),
  };
  const options = { ackWaitMs: 500 };
  const front = await rig.frontEnd<number, number>(queue, { ...options, clock, timeoutMs: 60_000 });
  let deaths = 0;
  const start = async (): Promise<void> => {
    const run = (): Promise<number[]> => {
      if (deaths < 3) {
        deaths++;
        isLate = true;
        void connection.close().then(start);
      }
      return new Promise(() => undefined);
    };
    const { connection } = await rig.worker<number, number>(queue, run, options);
  };
  await start();
  await start();
  await front.ready();
  const settled = front.settleDetailed([13]);
  await until(() => deaths === 3, "three workers have ended, and the front end has not seen it");
  isLate = false;
  for (const run of late.splice(0)) run();
  const [outcome] = await settled;
  assert.ok(outcome?.status === "rejected");
  assert.match(outcome.reason.message, /2 workers ended while they ran this item alone/);
  assert.deepEqual(await rig.deadLetters(queue), [outcome.reason.deadLetterId]);
});
