// The consumers of examples/jetstream and examples/redis-streams on the real servers, killed and stopped again and again:
// `MESSAGES=20000 ROUNDS=5 node --test messages.test.mjs` for a long run.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Redis } from "ioredis";
import { startNats, whyNoNats } from "../support/nats-server.mjs";
import { assertResult } from "../support/result.mjs";
import { skipWithoutRedis, startRedis } from "./lib/redis.mjs";
import { untilTrue } from "./lib/until.mjs";

const count = Number(process.env.MESSAGES ?? 1500);
const rounds = Number(process.env.ROUNDS ?? 1);
const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

async function copyOf(t, example) {
  const folder = await mkdtemp(pathOf("node_modules/.example-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(pathOf(`../../examples/${example}`), folder, { recursive: true });
  return folder;
}

/** What the test asks of a broker. */
async function onJetStream(t) {
  const server = await startNats();
  t.after(() => server.stop());
  const connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  t.after(() => connection.close());
  const js = jetstream(connection);
  const manager = await js.jetstreamManager();
  await manager.streams.add({ name: "JOBS", subjects: ["jobs"], retention: "workqueue" });
  await manager.streams.add({ name: "DEAD", subjects: ["dead"] });
  const config = { durable_name: "worker", ack_policy: "explicit", ack_wait: 2e9, max_ack_pending: 200 };
  await manager.consumers.add("JOBS", config);
  const stream = await js.streams.get("JOBS");
  return {
    environment: { NATS_URL: `nats://${server.url}` },
    add: (jobs) => Promise.all(jobs.map((job) => js.publish("jobs", JSON.stringify(job)))),
    left: async () => (await manager.streams.info("JOBS")).state.messages,
    dead: async () => (await manager.streams.info("DEAD")).state.messages,
    /** Whether the message of this number is still in the queue. */
    holds: async (n) => (await stream.getMessage({ seq: n + 1 })) !== null,
    // What the same consumer delivers again may come behind newer messages; a new one begins with the oldest message.
    renew: async () => {
      await manager.consumers.delete("JOBS", "worker");
      await manager.consumers.add("JOBS", config);
    },
    restart: () => server.restart(),
  };
}

async function onRedis(t) {
  const server = await startRedis();
  t.after(() => server.close());
  const redis = new Redis(server.port, "127.0.0.1", { maxRetriesPerRequest: null });
  redis.on("error", () => undefined); // while it restarts
  t.after(() => redis.disconnect());
  await redis.xgroup("CREATE", "jobs", "workers", "0", "MKSTREAM");
  const ids = [];
  return {
    environment: { REDIS_URL: `redis://127.0.0.1:${server.port}`, CONSUMER: "worker-0" },
    add: async (jobs) => {
      ids.push(...(await Promise.all(jobs.map((job) => redis.xadd("jobs", "*", "job", JSON.stringify(job))))));
    },
    left: () => redis.xlen("jobs"),
    dead: () => redis.xlen("dead"),
    holds: async (n) => (await redis.xrange("jobs", ids[n], ids[n])).length > 0,
    renew: () => undefined,
    restart: async () => {
      await server.stop("SIGKILL");
      await server.start();
    },
  };
}

/** Kills and stops the consumer of an example while it works, and then checks every run. */
async function endAgainAndAgain(t, example, open, isOrdered) {
  const broker = await open(t);
  const cwd = await copyOf(t, example);
  const doneFile = `${cwd}/done.txt`;
  await writeFile(doneFile, "");
  const env = { ...process.env, ...broker.environment, DONE_FILE: doneFile };
  const jobs = Array.from({ length: count }, (_, n) => ({
    n,
    key: n % 10,
    isBad: n % 100 === 7,
    isSlow: n % 100 === 8,
  }));
  for (let from = 0; from < count; from += 1000) await broker.add(jobs.slice(from, from + 1000));

  const running = [];
  t.after(() => running.forEach((child) => child.kill("SIGKILL")));
  const start = () => {
    const child = spawn(process.execPath, ["consumer.mjs"], { cwd, env, stdio: ["ignore", "inherit", "inherit"] });
    running.push(child);
    return child;
  };
  const runs = async () =>
    (await readFile(doneFile, "utf8"))
      .trim()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split(" "));
  const doneSet = async () => new Set((await runs()).map(([, , n]) => Number(n)));
  let early = 0;
  for (let stop = 1; stop <= 2 * rounds; stop++) {
    const child = start();
    const before = await broker.left();
    while (before - (await broker.left()) < count / (2 * rounds + 2)) await sleep(10);
    child.kill(stop % 2 === 1 ? "SIGKILL" : "SIGTERM");
    const [code] = await once(child, "exit");
    assert.equal(code, stop % 2 === 1 ? null : 0);
    const done = await doneSet();
    for (const { n } of jobs) if (!done.has(n) && !(await broker.holds(n))) early++;
    if (isOrdered) await broker.renew();
  }
  assertResult(early, 0, "messages that are acknowledged have results");
  const last = start();
  while ((await broker.left()) > 0) await sleep(50);
  last.kill("SIGTERM");
  const [code] = await once(last, "exit");
  assert.equal(code, 0);

  const all = await runs();
  const good = new Set(all.filter(([what]) => what === "done").map(([, , n]) => Number(n)));
  assertResult(good.size, count - Math.floor(count / 100), "lost");
  assertResult(await broker.dead(), Math.floor(count / 100));
  const latest = new Map();
  const seen = new Set();
  for (const [what, key, n] of all) {
    if (what !== "done" || seen.has(n)) continue; // run again after a kill
    seen.add(n);
    assert.ok(!isOrdered || (latest.get(key) ?? -1) < Number(n), `key ${key}: ${n} first ran after ${latest.get(key)}`);
    latest.set(key, Number(n));
  }
  const again = all.filter(([what]) => what === "done").length - good.size;
  const batches = all.reduce((sum, [, , , size]) => sum + 1 / Number(size), 0);
  t.diagnostic(
    `${count} messages, ${2 * rounds} ends, ${again} run again, ${(all.length / batches).toFixed(1)} a batch`,
  );
}

for (const [example, open, skip] of [
  ["jetstream", onJetStream, whyNoNats()],
  ["redis-streams", onRedis, skipWithoutRedis],
]) {
  test(`examples/${example}: every good message is done, and every bad one is put aside`, { skip }, async (t) => {
    const broker = await open(t);
    const cwd = await copyOf(t, example);
    const env = { ...process.env, ...broker.environment };
    const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd, env, timeout: 600_000 });
    assert.match(stdout, /^1980 messages done, 20 put aside, \d+ runs in \d+ batches\n$/);
  });

  const promise = "a consumer that is killed and stopped again and again loses nothing and acknowledges nothing early";
  test(`${example}: ${promise}`, { skip }, (t) => endAgainAndAgain(t, example, open, example === "redis-streams"));

  test(`${example}: the broker restarts in the middle: nothing is lost`, { skip }, async (t) => {
    const broker = await open(t);
    const cwd = await copyOf(t, example);
    const doneFile = `${cwd}/done.txt`;
    await writeFile(doneFile, "");
    const env = { ...process.env, ...broker.environment, DONE_FILE: doneFile };
    await broker.add(Array.from({ length: 1500 }, (_, n) => ({ n, key: n, isBad: false, isSlow: false })));
    const child = spawn(process.execPath, ["consumer.mjs"], { cwd, env, stdio: ["ignore", "inherit", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    while ((await broker.left()) > 1000) await sleep(10);
    await broker.restart();
    // By what was done: a nats-server that was killed may keep messages that it counts as acknowledged.
    const done = async () => new Set((await readFile(doneFile, "utf8")).match(/ \d+ (?=\d+$)/gm)).size;
    await untilTrue(async () => (await done()) === 1500);
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  });
}

test(
  "jetstream: with a new consumer at each start, each key keeps its order over kills and stops",
  { skip: whyNoNats() },
  (t) => endAgainAndAgain(t, "jetstream", onJetStream, true),
);
