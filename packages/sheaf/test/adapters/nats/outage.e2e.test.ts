import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { manualClock } from "../../../dist/testing/index.js";
import { Outage } from "../../../dist/adapters/nats/front-end/outage.js";
import { createBatcher } from "../../../dist/index.js";
import { assertResult } from "../../../../../test/support/result.mjs";
import { Rig, double, doubled, intercept, needsNats, numbers, skip, tokenOf, until } from "./rig.js";

const rig = new Rig();

test("calls that come while NATS restarts are held, and answered when it is back", needsNats, async () => {
  const { front, worker } = await rig.pair(double, { holdMs: 60_000, timeoutMs: 60_000 });
  await rig.nats.kill();
  await until(() => !front.isConnected, "the cut is seen");
  assert.equal(front.unavailableReason, undefined);
  const controller = new AbortController();
  const gone = front(50, { signal: controller.signal });
  const late = front(51, { timeoutMs: 100 });
  const answers = Promise.all(numbers(50).map((item) => front(item)));
  controller.abort(new Error("the caller has gone"));
  await assert.rejects(gone, /the caller has gone/);
  await assert.rejects(late, { code: "TIMEOUT" });
  await rig.nats.restart();
  assertResult(await answers, doubled(50));
  assertResult(worker.counts.delivered, 50, "each was queued once, and those that had ended never");
});

const skipHere = skip || (process.platform !== "linux" && "needs /proc to see that nats-server is stopped");

test(
  "what may have been queued when the connection went is published again, and runs once",
  { skip: skipHere },
  async () => {
    const queue = rig.newQueue();
    const front = await rig.frontEnd<number, number>(queue, { holdMs: 60_000, timeoutMs: 60_000 });
    const strict = await rig.frontEnd<number, number>(queue, { holdMs: 0 });
    const { worker } = await rig.worker(queue, double);
    await Promise.all([front.ready(), strict.ready()]);
    rig.nats.pause();
    await until(() => /\) T /.test(readFileSync(`/proc/${rig.nats.pid}/stat`, "utf8")), "it is stopped");
    const sent = front(1);
    const refused = strict(2);
    refused.catch(() => undefined);
    await rig.nats.kill();
    await assert.rejects(refused, { code: "UNAVAILABLE", message: /connection to NATS is down/ });
    await rig.nats.restart();
    assert.equal(await sent, 2);
    assert.equal(worker.counts.delivered, 1);
  },
);

test("a call is held no longer than holdMs, and a later one fails at once; 0 holds none", () => {
  const clock = manualClock();
  const refused: [unknown, string][] = [];
  const released: unknown[] = [];
  const events = {
    release: (call: unknown) => void released.push(call),
    refuse: (call: unknown, error: Error) => void refused.push([call, error.message]),
  };
  const outage = new Outage({ clock } as never, { holdMs: 1000, name: "echo" }, events);
  const call = { payload: new Uint8Array(8) } as never;
  assert.equal(outage.hold(call), false, "the connection is up");
  outage.begin();
  outage.check();
  assert.equal(outage.hold(call), true);
  clock.advance(1000);
  assert.deepEqual(refused, [[call, "echo: the connection to NATS is down. Try again."]]);
  assert.throws(() => outage.check(), { code: "UNAVAILABLE" });
  outage.end();
  outage.check();
  outage.begin();
  outage.hold(call);
  clock.advance(999);
  outage.end();
  assert.deepEqual(released, [call]);

  outage.begin();
  outage.hold(call);
  outage.reconnected();
  clock.advance(1000);
  assert.deepEqual(released, [call, call], "the connection is back: whether the queue takes it, the queue says");
  outage.begin();
  clock.advance(1000);
  outage.reconnected();
  assert.equal(outage.hold(call), false, "nor does a later one wait for the queue to be found");

  outage.begin();
  const large = { payload: new Uint8Array(2 ** 20) } as never;
  for (let i = 0; i < 64; i++) outage.hold(large);
  assert.throws(() => outage.check(), { code: "UNAVAILABLE" }, "64 MiB are held at most");
  outage.stop();

  const strict = new Outage({ clock } as never, { holdMs: 0, name: "echo" }, events);
  strict.begin();
  assert.match(strict.reason!, /connection to NATS is down/);
  assert.throws(() => strict.check(), { code: "UNAVAILABLE" });
});

test("a queue that no server leads: calls are held once, then refused until it is there or takes one", () => {
  const clock = manualClock();
  const refused: string[] = [];
  const released: unknown[] = [];
  const outage = new Outage(
    { clock, replicas: 3 } as never,
    { holdMs: 1000, name: "echo" },
    {
      release: (call: unknown) => void released.push(call),
      refuse: (_call: unknown, error: Error) => void refused.push(error.message),
    },
  );
  const call = { payload: new Uint8Array(8) } as never;
  const why = "JetStream elects a new leader, for which most of its servers must be up";
  outage.missing();
  outage.holdAgain(call);
  outage.missing();
  assert.deepEqual(outage.fault, { reason: why, isHeld: true, needsProbe: true });
  clock.advance(400);
  outage.end();
  assert.deepEqual([released, refused], [[call], []]);
  assert.equal(outage.fault, undefined);

  outage.missing();
  outage.holdAgain(call);
  clock.advance(1000);
  assert.deepEqual(refused, [`echo: ${why}. Try again.`]);
  assert.throws(() => outage.check(), { code: "UNAVAILABLE", message: /elects a new leader/ });
  outage.holdAgain(call);
  assert.equal(refused.length, 2, "it was on its way, and was not taken");

  outage.end();
  outage.begin();
  outage.hold(call);
  outage.reconnected();
  clock.advance(1000);
  assert.equal(released.length, 2, "the connection is back, and the queue was not found");
  outage.missing();
  outage.holdAgain(call);
  assert.equal(refused.length, 3, "it has waited for as long as it may");
  outage.stop();
});

test("after an election the queue is looked for at once, however many requests got no answer", needsNats, async () => {
  const queue = rig.newQueue();
  const stream = `SHEAF_${tokenOf(queue)}`;
  const connection = await rig.connect();
  // As JetStream while nothing leads the queue.
  let isLeaderless = false;
  let looks = 0;
  intercept(connection, (subject) => {
    if (subject !== `$JS.API.STREAM.INFO.${stream}`) return undefined;
    looks++;
    return isLeaderless ? new Promise(() => undefined) : undefined;
  });
  const front = await rig.frontEnd<number, number>(queue, { connection });
  await rig.worker(queue, double);
  await front.ready();
  const operator = await rig.connect();
  const elected = async (): Promise<void> => {
    const before = looks;
    operator.publish(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${stream}`);
    await until(() => looks > before, "it is looked for");
  };
  isLeaderless = true;
  for (let election = 0; election < 6; election++) await elected();
  isLeaderless = false;
  await elected();
  await until(() => front.unavailableReason === undefined, "it is found");
  assert.equal(await front(1), 2);
});

test("a lane without a leader keeps no items of the others waiting", needsNats, async () => {
  const queue = rig.newQueue();
  const connection = await rig.connect();
  let isLeaderless = false;
  let looks = 0;
  intercept(connection, (subject) => {
    if (!isLeaderless || !/^\$JS\.API\.CONSUMER\.INFO\..*-bulk$/.test(subject)) return undefined;
    looks++;
    return new Promise(() => undefined);
  });
  const { worker } = await rig.serve(queue, createBatcher(double), { connection });
  await worker.ready();
  const front = await rig.frontEnd<number, number>(queue);
  await front.ready();
  isLeaderless = true;
  await connection.reconnect();
  await until(() => looks > 0, "the worker looks for its lanes");
  let isAnswered = false;
  const answer = front(1);
  void answer.then(() => (isAnswered = true)).catch(() => undefined);
  await until(() => isAnswered, "it is answered");
  assert.equal(await answer, 2);
});

test("items given out twice are counted while they are at a worker, and no longer", needsNats, async () => {
  const queue = rig.newQueue();
  const options = { ackWaitMs: 1000, maxDeliver: 2 };
  const front = await rig.frontEnd<number, number>(queue, options);
  for (let i = 0; i < 2; i++) {
    let hasEntered = false;
    const { connection } = await rig.worker<number, number>(
      queue,
      () => ((hasEntered = true), new Promise(() => undefined)),
      options,
    );
    if (i === 0) {
      await front.ready();
      front(1).catch(() => undefined);
    }
    // The second time it may go to the first worker, just before the server sees that its connection is closed.
    await until(() => hasEntered || front.stats().items.error === 1, "a worker has it, or nobody gets it any more");
    await connection.close();
  }
  // One that asks for more makes the server notice.
  await rig.worker(queue, double, options);
  await until(() => front.stats().items.error === 1, "it is a dead letter");
  await until(async () => (await front.figures())[1]!.redelivered === 0, "it is not counted any more");
});
