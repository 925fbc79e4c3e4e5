import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { manualClock } from "../../../dist/testing/index.js";
import type { Clock } from "../../../dist/core/runtime/runtime.js";
import { Heartbeat } from "../../../dist/adapters/nats/worker/heartbeat.js";
import { createBatcher } from "../../../dist/index.js";
import { natsFrontEnd, natsWorker } from "../../../dist/adapters/nats/index.js";
import { startNats } from "../../../../../test/support/nats-server.mjs";
import { Gate, Rig, double, doubled, needsNats, numbers, tokenOf, until, waiting } from "./rig.js";

const rig = new Rig();

const ackWaitMs = 2000;

test("an operator deletes the queue: what waited in it fails at once, and it is made again", needsNats, async () => {
  const gate = new Gate();
  const { queue, front } = await rig.pair(gate.run, { ackWaitMs }, { maxBatchSize: 1 });
  const outcomes = Promise.allSettled([1, 2, 3, 4].map((item) => front(item)));
  await until(() => gate.entered.length === 1, "one runs");
  await until(async () => (await waiting(front)) === 4, "all are accepted");
  assert.equal((await rig.api(`STREAM.DELETE.SHEAF_${tokenOf(queue)}`)).success, true);
  const reasons = (await outcomes).map((outcome) => (outcome.status === "rejected" ? outcome.reason : undefined));
  for (const reason of reasons) assert.match(String(reason?.message), /lost the queue/);
  gate.open();
  await until(async () => (await front(5).catch(() => 0)) === 10, "the queue serves again");
});

test("an operator deletes a consumer while its worker is busy: every item is answered", needsNats, async () => {
  const gate = new Gate();
  const { queue, front } = await rig.pair(gate.run, { ackWaitMs }, { maxBatchSize: 1 });
  const answers = [1, 2, 3, 4].map((item) => front(item));
  await until(() => gate.entered.length === 1, "one runs");
  await until(async () => (await waiting(front)) === 4, "all are accepted");
  const consumer = `SHEAF_${tokenOf(queue)}.any-interactive`;
  assert.equal((await rig.api(`CONSUMER.DELETE.${consumer}`)).success, true);
  gate.open();
  assert.deepEqual(await Promise.all(answers), [2, 4, 6, 8]);
  assert.equal((await rig.api(`CONSUMER.INFO.${consumer}`)).name, "any-interactive");
});

test(
  "an operator changes a stream so that items vanish: it is taken back, and other changes are named",
  needsNats,
  async () => {
    const warnings: string[] = [];
    const onWarning = (message: string): number => warnings.push(message);
    const gate = new Gate();
    const { queue, front } = await rig.pair(gate.run, { onWarning }, { maxBatchSize: 1 });
    const name = `SHEAF_${tokenOf(queue)}`;
    const configOf = async (): Promise<any> => (await rig.api(`STREAM.INFO.${name}`)).config;
    const own = await configOf();
    const changed = {
      ...own,
      discard: "old",
      discard_new_per_subject: false,
      max_msgs: 5,
      max_age: 3e10,
      duplicate_window: 3e10,
    };
    assert.equal((await rig.api(`STREAM.UPDATE.${name}`, changed)).error, undefined);
    await until(async () => (await configOf()).discard === "new", "it is taken back");
    const kept = await configOf();
    assert.deepEqual([kept.max_msgs, kept.discard_new_per_subject, kept.max_age], [-1, true, changed.max_age]);
    const [others, rules] = [
      /max_age is 30000000000, and not 60000000000, .* Start all/,
      /discard is "old", and not "new"/,
    ];
    await until(() => [others, rules].every((said) => warnings.some((text) => said.test(text))), "it is told");
    const answers = numbers(20).map((item) => front(item));
    await until(async () => (await waiting(front)) === 20, "all are kept");
    gate.open();
    assert.deepEqual(await Promise.all(answers), doubled(20));
    assert.equal((await rig.api(`STREAM.UPDATE.${name}`, { ...kept, no_ack: true })).error, undefined);
    await until(async () => !(await configOf()).no_ack, "items are confirmed again");
    assert.equal(await front(1), 2);
  },
);

test("a queue that the server refuses is reported, and one that it takes later is used", needsNats, async (t) => {
  const { mock } = t.mock.method(console, "warn", () => undefined);
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue, { maxQueueBytes: 2 ** 50 });
  await rig.serve(queue, createBatcher(double), { maxQueueBytes: 2 ** 50 });
  const refused = /JetStream refused SHEAF_test.*: insufficient storage.* The queue test \d+\.x reserves \d+ bytes/;
  await until(() => refused.test(front.unavailableReason ?? ""), "its front end says so");
  const warned = /cannot be used, and is tried again: JetStream refused SHEAF_test.*: insufficient storage/;
  await until(() => mock.calls.some(({ arguments: [text] }) => warned.test(String(text))), "it is warned of");
  assert.deepEqual(front.workers(), [], "a worker without a queue does not serve");
  await assert.rejects(front(1), { code: "UNAVAILABLE" });
  // The operator makes room, or the queue itself.
  const subjects = ["immediate", "interactive", "bulk"].map((lane) => `sheaf.${tokenOf(queue)}.q.any.${lane}`);
  const { error } = await rig.api(`STREAM.CREATE.SHEAF_${tokenOf(queue)}`, {
    name: `SHEAF_${tokenOf(queue)}`,
    subjects,
    retention: "workqueue",
  });
  assert.equal(error, undefined);
  await until(async () => (await front(1).catch(() => 0)) === 2, "it is used");
});

test("a queue that is full by its bytes says so, and not that 1000 items wait", needsNats, async () => {
  const gate = new Gate();
  const maxQueueBytes = 200_000;
  const { front } = await rig.pair<Uint8Array, unknown>(gate.run as never, { maxQueueBytes }, { maxBatchSize: 1 });
  const outcomes = Promise.allSettled(Array.from({ length: 5 }, () => front(new Uint8Array(90_000))));
  await assert.rejects(front(new Uint8Array(90_000)), {
    code: "QUEUE_FULL",
    message: /: the queue is full \(200000 bytes\): maximum bytes exceeded/,
  });
  gate.open();
  await outcomes;
});

test("a queue whose name no stream could have is refused at once", needsNats, async () => {
  await assert.rejects(rig.frontEnd("é".repeat(100)), { name: "RangeError", message: /at most 200 are allowed/ });
});

function heartbeat(clock: Clock, said: string[] = []): Heartbeat {
  const link = { publish: (subject: string) => said.push(subject) };
  const about = () => ({ id: "w", slots: 1, maxBatchSize: 1, isServing: true, route: "any", generation: 0 });
  return new Heartbeat({ clock } as never, { alive: "alive" } as never, link as never, about);
}

test("a worker tells the speed of its largest batch lately, and of a smaller one that was faster", () => {
  const clock = manualClock();
  const presence = heartbeat(clock);
  const told = (size: number, runMs: number, outcome = "ok"): readonly number[] => {
    presence.observe({ size, runMs, outcome } as never);
    const { info } = presence;
    return [info.runSize, info.runMs];
  };
  assert.deepEqual(told(8, 1400), [8, 1400]);
  assert.deepEqual(told(1, 8), [1, 8], "the largest met a pause");
  assert.deepEqual(told(32, 40), [32, 40]);
  assert.deepEqual(told(1, 8), [32, 40]);
  assert.deepEqual(told(32, 60), [32, 60], "speeds change");
  assert.deepEqual(told(32, 1, "error"), [32, 60], "a failure says nothing");
  clock.advance(60_001);
  assert.deepEqual(told(1, 8), [1, 8], "what is old does not count");
});

test("a thousand front ends that ask for workers are answered together", () => {
  const clock = manualClock();
  const said: string[] = [];
  const presence = heartbeat(clock, said);
  for (let i = 0; i < 1000; i++) presence.asked();
  assert.equal(said.length, 1, "the first at once");
  clock.advance(1000);
  assert.equal(said.length, 2, "all others with one more word");
});

const users = `jetstream {}
authorization { users: [
  { user: all, password: p }
  { user: withoutApi, password: p, permissions: { publish: { deny: "$JS.API.>" } } }
  { user: withoutCancel, password: p, permissions: { subscribe: { deny: "sheaf.*.cancel" } } }
  { user: withoutInbox, password: p, permissions: { subscribe: { deny: "_INBOX.>" } } }
] }`;

async function guarded(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-users-"));
  writeFileSync(join(folder, "nats.conf"), users);
  const nats = await startNats(["-c", join(folder, "nats.conf")]);
  const open: NatsConnection[] = [];
  t.after(async () => {
    for (const connection of open) await connection.close();
    await nats.stop();
    rmSync(folder, { recursive: true });
  });
  return async (user: string): Promise<NatsConnection> => {
    const connection = await connect({ servers: nats.url, user, pass: "p" });
    open.push(connection);
    return connection;
  };
}

test("a worker that may not use JetStream does not say that it serves", needsNats, async (t) => {
  t.mock.method(console, "warn", () => undefined);
  const as = await guarded(t);
  const front = natsFrontEnd<number, number>({ connection: await as("all"), headers, queue: "q" });
  const worker = natsWorker(createBatcher(double), { connection: await as("withoutApi"), headers, queue: "q" });
  await until(() => /JetStream does not answer/.test(worker.unavailableReason ?? ""), "it says so");
  const other = natsWorker(createBatcher(double), { connection: await as("all"), headers, queue: "q" });
  await other.ready();
  await front.ready();
  assert.equal(await front(1), 2);
  assert.equal(front.workers().length, 1);
  await worker.drain();
  await other.drain();
  await front.close();
});

test("a worker that may not subscribe to cancellations says so, and serves", needsNats, async (t) => {
  const { mock } = t.mock.method(console, "warn", () => undefined);
  const as = await guarded(t);
  const front = natsFrontEnd<number, number>({ connection: await as("all"), headers, queue: "q" });
  const worker = natsWorker(createBatcher(double), { connection: await as("withoutCancel"), headers, queue: "q" });
  await worker.ready();
  await front.ready();
  assert.equal(await front(1), 2);
  assert.match(String(mock.calls[0]!.arguments[0]), /NATS refused the subscription to sheaf\.q\.cancel/);
  await worker.drain();
  await front.close();
});

test("a side that may not listen to its own subjects says which", needsNats, async (t) => {
  const { mock } = t.mock.method(console, "warn", () => undefined);
  const as = await guarded(t);
  const front = natsFrontEnd<number, number>({ connection: await as("withoutInbox"), headers, queue: "q" });
  await until(() => front.unavailableReason !== undefined, "it says so");
  assert.match(front.unavailableReason!, /NATS refused the subscription to _INBOX\.\w+\.\* .*restart this process/);
  assert.match(String(mock.calls[0]!.arguments[0]), /refused the subscription/);
  await front.close({ graceMs: 0 });
});
