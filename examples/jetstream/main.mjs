// 2000 messages, some of them bad, and a consumer that is killed in the middle. Needs nats-server: NATS_URL of a running one.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const count = 2000;
const folder = mkdtempSync(join(tmpdir(), "jetstream-example-"));
process.env.DONE_FILE = join(folder, "done.txt");
writeFileSync(process.env.DONE_FILE, "");
process.env.NATS_URL ??= "nats://127.0.0.1:4222";

const connection = await connect({ servers: process.env.NATS_URL });
const js = jetstream(connection);
const manager = await js.jetstreamManager();
const work = { name: "JOBS", subjects: ["jobs"], retention: "workqueue" };
for (const stream of [work, { name: "DEAD", subjects: ["dead"] }]) {
  await manager.streams.delete(stream.name).catch(() => undefined);
  await manager.streams.add(stream);
}
const config = { durable_name: "worker", ack_policy: "explicit", ack_wait: 2e9, max_ack_pending: 200 };
await manager.consumers.add("JOBS", config);
const jobs = Array.from({ length: count }, (_, n) => ({ n, key: n % 10, isBad: n % 100 === 7, isSlow: n % 100 === 8 }));
await Promise.all(jobs.map((job) => js.publish("jobs", JSON.stringify(job))));

const left = async (name) => (await manager.streams.info(name)).state.messages;
let consumer = fork("consumer.mjs");
while ((await left("JOBS")) > count / 2) await sleep(20);
consumer.kill("SIGKILL");
consumer = fork("consumer.mjs");
for (let tries = 0; (await left("JOBS")) > 0; tries++) {
  assert.ok(tries < 600, `${await left("JOBS")} messages are left`);
  await sleep(50);
}
consumer.kill("SIGTERM");
assert.deepEqual(await once(consumer, "exit"), [0, null]);

const lines = readFileSync(process.env.DONE_FILE, "utf8").trim().split("\n");
const done = new Set(lines.filter((line) => line.startsWith("done")).map((line) => Number(line.split(" ")[2])));
assert.equal(done.size, count - count / 100, "each good message was done");
assert.equal(await left("DEAD"), count / 100, "each bad one was put aside after three deliveries");
const batches = lines.reduce((sum, line) => sum + 1 / Number(line.split(" ")[3]), 0);
console.log(
  `${done.size} messages done, ${count / 100} put aside, ${lines.length} runs in ${Math.round(batches)} batches`,
);
await connection.close();
rmSync(folder, { recursive: true });
