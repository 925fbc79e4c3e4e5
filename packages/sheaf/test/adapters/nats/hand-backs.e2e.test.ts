import assert from "node:assert/strict";
import { test } from "node:test";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { NatsFrontEnd, NatsWorker } from "../../../dist/adapters/nats/index.js";
import { createBatcher } from "../../../dist/index.js";
import { Gate, Rig, needsNats, numbers, until } from "./rig.js";

const rig = new Rig();

// Longer than a test lasts: an item that waits for either of them is not answered.
const options = { ackWaitMs: 600_000, maxAgeMs: 1_200_000 };
const timeoutMs = 1_200_000;

/** Items on their way to a worker: they arrive when the test lets them. */
class SlowWay {
  readonly waiting: (() => void)[] = [];

  constructor(connection: NatsConnection) {
    const subscribe = connection.subscribe.bind(connection);
    connection.subscribe = (subject, { callback, ...others } = {}) =>
      subscribe(subject, {
        ...others,
        callback: (error: Error | null, message: Msg): void => {
          const arrive = (): void => void callback?.(error, message);
          if (message.reply?.startsWith("$JS.ACK.") === true) this.waiting.push(arrive);
          else arrive();
        },
      });
  }

  arrive(): void {
    for (const arrive of this.waiting.splice(0)) arrive();
  }
}

/** A worker that is ended while `item` is on its way to it, and another one, which gets the item then. */
async function handedBack(
  queue: string,
  front: NatsFrontEnd<number, number>,
  item: number,
  next: Gate,
): Promise<{
  readonly answer: ReturnType<typeof front.detailed>;
  readonly worker: NatsWorker;
  readonly connection: NatsConnection;
}> {
  const connection = await rig.connect();
  const way = new SlowWay(connection);
  const ended = new Gate();
  const batcher = createBatcher(ended.run, { concurrency: 1 });
  const { worker: first } = await rig.serve(queue, batcher, { ...options, connection });
  await first.ready();
  await front.ready();
  const answer = front.detailed(item);
  answer.catch(() => undefined);
  await until(() => way.waiting.length === 1, "it is on its way to the first worker");
  const heir = await rig.worker(queue, next.run, options);
  await bothReport(queue);
  const drained = first.drain();
  way.arrive();
  await drained;
  await batcher.close();
  assert.deepEqual(ended.entered, []);
  assert.equal(first.counts.handedBack, 1);
  await until(() => heir.worker.counts.redelivered === 1, "the other worker has it");
  return { answer, ...heir };
}

/** A front end that starts asks all workers to report: then each front end knows that both serve. */
async function bothReport(queue: string): Promise<void> {
  const asking = await rig.frontEnd<number, number>(queue, options);
  await until(() => asking.workers().length === 2, "both report");
}

test("an item that an ended worker hands back runs at the last one, as any other", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue, { ...options, timeoutMs });
  const next = new Gate();
  next.open();
  const { answer } = await handedBack(queue, front, 1, next);
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  await until(() => isAnswered, "it is answered");
  const { value, deliveries } = await answer;
  assert.deepEqual([value, deliveries], [2, 2]);
  assert.deepEqual(next.entered, [[1]]);
});

test(
  "an item that was handed back, and is at a worker that is killed, waits for a second one as others do",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const front = await rig.frontEnd<number, number>(queue, { ...options, timeoutMs });
    const [lost, last, heir] = [new Gate(), new Gate(), new Gate()];
    const { answer, connection } = await handedBack(queue, front, 1, lost);
    await until(() => lost.entered.length === 1, "it runs");
    last.open();
    const { worker } = await rig.worker(queue, last.run, options);
    await bothReport(queue);
    await connection.close();
    await until(() => worker.counts.redelivered === 1, "the last one has it");
    const others = numbers(10).map((i) => 2 + i);
    for (const item of others) assert.equal(await front(item), 2 * item);
    assert.deepEqual(last.entered.flat(), others, "and runs others only");
    heir.open();
    await rig.worker(queue, heir.run, options);
    assert.equal((await answer).deliveries, 3);
  },
);

test("an item whose run is cut off at the end of a worker waits for a second one", needsNats, async () => {
  const [cut, last, heir] = [new Gate(), new Gate(), new Gate()];
  const { queue, front, worker: ended } = await rig.pair(cut.run, { ...options, timeoutMs });
  const answer = front.detailed(1);
  await until(() => cut.entered.length === 1, "it runs");
  last.open();
  const { worker } = await rig.worker(queue, last.run, options);
  await bothReport(queue);
  await ended.drain({ graceMs: 0 });
  await until(() => worker.counts.redelivered === 1, "the last one has it");
  for (const item of [2, 3, 4]) assert.equal(await front(item), 2 * item);
  assert.deepEqual(last.entered.flat(), [2, 3, 4], "and runs others only");
  heir.open();
  await rig.worker(queue, heir.run, options);
  assert.equal((await answer).deliveries, 2);
});
