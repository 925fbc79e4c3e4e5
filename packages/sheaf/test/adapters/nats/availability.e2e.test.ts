import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { natsFrontEnd, natsWorker } from "../../../dist/adapters/nats/index.js";
import { Availability, type Fault } from "../../../dist/adapters/nats/front-end/availability.js";
import { createBatcher } from "../../../dist/index.js";
import { manualClock } from "../../../dist/testing/index.js";
import { freePort, startNats, type RunningNats } from "../../../../../test/support/nats-server.mjs";
import { Rig, double, intercept, needsNats, numbers, tokenOf, until } from "./rig.js";

const rig = new Rig();

/** A front end and a worker, and what the front end warns of. */
async function pair() {
  const warnings: string[] = [];
  const both = await rig.pair(double, { onWarning: (message) => void warnings.push(message) });
  assert.equal(await both.front(1), 2);
  assert.equal(both.front.unavailableReason, undefined);
  return { ...both, warnings };
}

const times = (warnings: readonly string[], pattern: RegExp): number =>
  warnings.filter((warning) => pattern.test(warning)).length;

test(
  "an operator seals the queue: a front end without calls says so, once, until it is made again",
  needsNats,
  async () => {
    const { queue, front, warnings } = await pair();
    const stream = `SHEAF_${tokenOf(queue)}`;
    const { config } = await rig.api(`STREAM.INFO.${stream}`);
    const { error } = await rig.api(`STREAM.UPDATE.${stream}`, { ...config, sealed: true });
    assert.equal(error, undefined);
    await until(() => /is sealed, for good: delete it/.test(front.unavailableReason ?? ""), "it says so");
    await assert.rejects(front(2), { code: "UNAVAILABLE", message: /sealed/ });
    await rig.api(`STREAM.DELETE.${stream}`);
    await until(() => front.unavailableReason === undefined, "it is there again");
    await until(async () => (await front(3).catch(() => 0)) === 6, "it serves again");
    assert.equal(times(warnings, /sealed/), 1, warnings.join("\n"));
  },
);

test(
  "JetStream refuses items for a second: the front end says so, once, and finds out by itself that it is over",
  needsNats,
  async () => {
    const { queue, front, warnings } = await pair();
    const stream = `SHEAF_${tokenOf(queue)}`;
    const { config } = await rig.api(`STREAM.INFO.${stream}`);
    // As a disk that is full: the stream looks right, and stores nothing.
    await rig.api(`STREAM.UPDATE.${stream}`, { ...config, max_msg_size: 1 });
    await assert.rejects(front(2), {
      code: "UNAVAILABLE",
      message: /JetStream refused the item: message size exceeds/,
    });
    await until(
      () => /JetStream refuses items \(message size exceeds/.test(front.unavailableReason ?? ""),
      "it says so",
    );
    await rig.api(`STREAM.UPDATE.${stream}`, config);
    await until(() => front.unavailableReason === undefined, "no call was needed");
    assert.equal(await front(3), 6);
    assert.equal(times(warnings, /takes no items/), 1, warnings.join("\n"));
    assert.equal(times(warnings, /takes items again, after \d+ ms/), 1, warnings.join("\n"));
    await until(async () => (await rig.api(`STREAM.INFO.${stream}`)).state.messages === 0, "no probe holds a place");
  },
);

test("a fault is logged after a second, and its end once it is seen: not when the connection goes", () => {
  const clock = manualClock();
  const warnings: string[] = [];
  const link = { isConnected: true };
  let fault: Fault | undefined;
  let probes = 0;
  const settings = { clock, queue: "echo", warn: (message: string) => void warnings.push(message) } as never;
  const fell: string[] = [];
  const availability = new Availability({
    settings,
    link,
    holdMs: 5000,
    fault: () => fault,
    probe: () => probes++,
    fell: (reason) => fell.push(reason),
  });
  fault = { reason: "a short one" };
  clock.advance(1000);
  fault = undefined;
  clock.advance(250);
  assert.deepEqual(warnings, []);

  fault = { reason: "no leader", isHeld: true, needsProbe: true };
  clock.advance(2250);
  assert.equal(probes, 3, "one at once, then one each second");
  assert.deepEqual(warnings, ["sheaf: the queue echo takes no items, and is tried again: no leader."]);
  assert.deepEqual([availability.reason, fell], [undefined, []], "calls are held");
  clock.advance(3000);
  assert.deepEqual([availability.reason, fell], ["no leader", ["no leader"]], "those that wait are told once");
  fault = undefined;
  link.isConnected = false;
  clock.advance(10_000);
  assert.equal(warnings.length, 1);
  link.isConnected = true;
  clock.advance(250);
  assert.deepEqual(warnings.slice(1), ["sheaf: the queue echo: it takes items again, after 15250 ms."]);
  assert.equal(availability.reason, undefined);
  availability.stop();
});

test("a queue that can be used but not be looked for: a probe finds that it takes items again", needsNats, async () => {
  const queue = rig.newQueue();
  const stream = `SHEAF_${tokenOf(queue)}`;
  const connection = await rig.connect();
  let mayUseApi = true;
  intercept(connection, (subject) =>
    mayUseApi || !subject.startsWith("$JS.API.") ? undefined : Promise.reject(new Error("not allowed")),
  );
  const onWarning = (): void => undefined;
  const front = await rig.frontEnd<number, number>(queue, { connection, holdMs: 0, onWarning });
  await until(async () => (await rig.api(`STREAM.INFO.${stream}`)).error === undefined, "the queue is there");
  mayUseApi = false;
  await rig.api(`STREAM.DELETE.${stream}`);
  await assert.rejects(front(1), { code: "UNAVAILABLE", message: /no such queue/ });
  await rig.worker(queue, double);
  await until(async () => (await front(2).catch(() => 0)) === 4, "it serves");
});

test("a NATS server that hangs for some seconds: both sides say so, and that it is over", needsNats, async () => {
  const { front, worker, warnings } = await pair();
  rig.nats.pause();
  try {
    for (const side of [front, worker])
      await until(() => side.unavailableReason === "NATS does not answer", "it says so");
  } finally {
    rig.nats.resume();
  }
  await until(() => (front.unavailableReason ?? worker.unavailableReason) === undefined, "it answers again");
  assert.equal(await front(2), 4);
  assert.equal(times(warnings, /takes no items, and is tried again: (NATS|JetStream) does not answer/), 1);
  assert.equal(times(warnings, /takes items again/), 1);
});

test("calls that wait when NATS hangs are refused once that is known, and do not run later", needsNats, async () => {
  const ran: number[] = [];
  const { front } = await rig.pair((items: number[]) => {
    ran.push(...items);
    return items;
  });
  await front(0);
  rig.nats.pause();
  // Its threads stop one after the other: until then it may take an item.
  await sleep(100);
  try {
    const outcomes = await Promise.allSettled(numbers(20).map((item) => front(1 + item)));
    const reason = /(NATS|JetStream) does not answer/;
    for (const outcome of outcomes) assert.match(String((outcome as { reason?: unknown }).reason), reason);
    assert.match(front.unavailableReason ?? "", reason);
  } finally {
    rig.nats.resume();
  }
  await until(() => front.unavailableReason === undefined, "it is over");
  assert.equal(await front(99), 99);
  await until(async () => (await front.figures()).every(({ pending, ackPending }) => pending + ackPending === 0), "the queue is empty"); // prettier-ignore
  assert.deepEqual(ran, [0, 99]);
});

test("an operator's limit of the items that are out at a time is taken back, with a warning", needsNats, async () => {
  const { queue, front, warnings } = await pair();
  const consumer = `SHEAF_${tokenOf(queue)}.any-interactive`;
  const limitOf = async (): Promise<unknown> => (await rig.api(`CONSUMER.INFO.${consumer}`)).config.max_ack_pending;
  const { config } = await rig.api(`CONSUMER.INFO.${consumer}`);
  await rig.api(`CONSUMER.DURABLE.CREATE.${consumer}`, {
    stream_name: `SHEAF_${tokenOf(queue)}`,
    config: { ...config, max_ack_pending: 1 },
  });
  const taken = /any-interactive gave out at most 1 items at a time \(max_ack_pending\)/;
  await until(() => times(warnings, taken) === 1, "the warning comes");
  assert.equal(await limitOf(), -1);
  assert.equal(await front(2), 4);
});

test("an operator pauses the queue: the front end says so until it goes on", needsNats, async (t) => {
  const { queue, front } = await pair();
  const subjects = ["immediate", "interactive", "bulk"].map(
    (lane) => `CONSUMER.PAUSE.SHEAF_${tokenOf(queue)}.any-${lane}`,
  );
  for (const subject of subjects) {
    const inAnHour = { pause_until: new Date(Date.now() + 3_600_000).toISOString() };
    const reply = await rig.api(subject, inAnHour).catch(() => undefined);
    if (reply?.paused !== true) return t.skip("nats-server 2.10 cannot pause a consumer");
  }
  const answer = front(2);
  await until(() => /an operator has paused/.test(front.unavailableReason ?? ""), "it says so");
  for (const subject of subjects) await rig.api(subject);
  assert.equal(await answer, 4);
  await until(() => front.unavailableReason === undefined, "it goes on");
});

test(
  "a front end at a leaf node with a JetStream domain of its own refuses calls, naming both domains",
  needsNats,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sheaf-leaf-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const port = await freePort();
    const start = async (name: string, leafnodes: string): Promise<RunningNats> => {
      const file = join(folder, `${name}.conf`);
      const storage = "max_file_store: 1000GB, max_memory_store: 1000GB";
      writeFileSync(
        file,
        `jetstream { domain: ${name}, ${storage} }\nserver_name: ${name}\nleafnodes { ${leafnodes} }\n`,
      );
      const nats = await startNats(["-c", file]);
      t.after(() => nats.stop());
      return nats;
    };
    const hub = await start("hub", `host: 127.0.0.1, port: ${port}`);
    const leaf = await start("edge", `remotes: [ { url: "nats://127.0.0.1:${port}" } ]`);
    const at = async ({ url }: RunningNats): Promise<NatsConnection> => {
      const connection = await connect({ servers: url });
      t.after(() => connection.close());
      return connection;
    };
    const warnings: string[] = [];
    const onWarning = (message: string): void => void warnings.push(message);
    const front = natsFrontEnd<number, number>({ connection: await at(leaf), headers, queue: "split", onWarning });
    const worker = natsWorker(createBatcher(double), { connection: await at(hub), headers, queue: "split" });
    t.after(() => worker.drain({ graceMs: 0 }));
    t.after(() => front.close({ graceMs: 0 }));
    const conflict = /its workers are in the JetStream domain hub, this front end is in the JetStream domain edge/;
    await until(() => conflict.test(front.unavailableReason ?? ""), "it says so");
    await assert.rejects(front(1), { code: "UNAVAILABLE", message: conflict });
    assert.equal(times(warnings, conflict), 1);
    const beside = natsFrontEnd<number, number>({ connection: await at(hub), headers, queue: "split" });
    t.after(() => beside.close({ graceMs: 0 }));
    await beside.ready();
    assert.equal(await beside(1), 2, "one of the same domain is served");
  },
);
