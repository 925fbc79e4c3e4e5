// A disk that is full. A log of batches: what it watches goes on, and once there is room again it writes what it kept. The queue of a
// fleet: callers are told why.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { connect, headers } from "@nats-io/transport-node";
import OpenAI, { toFile } from "openai";
import pg from "pg";
import { createBatcher } from "sheaf";
import { createServer } from "../../packages/sheaf-server/dist/index.js";
import { batchLog } from "sheaf/adapters/batch-log";
import { natsFrontEnd, natsWorker } from "sheaf/adapters/nats";
import { readRecords } from "sheaf/internal/tuning";
import { startNats, whyNoNats } from "../support/nats-server.mjs";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";
import { untilTrue } from "./lib/until.mjs";

const skip = whyNoMount();

test("PGlite on a full disk", { skip }, async (t) => {
  const disk = smallDisk(t, 64);
  const db = await PGlite.create(join(disk, "db"));
  t.after(() => db.close().catch(() => undefined));
  await survives(t, disk, db);
});

test("PostgreSQL on a full disk", { skip: skip || skipWithoutPostgres }, async (t) => {
  const disk = smallDisk(t, 160);
  const server = await startPostgres({ max_wal_size: "32MB", min_wal_size: "32MB" }, disk);
  t.after(() => server.close());
  const pool = new pg.Pool({ connectionString: server.url, max: 2 });
  pool.on("error", () => undefined);
  t.after(() => pool.end());
  await survives(t, disk, pool, () => server.start());
});

test(
  "batches on a full disk: an upload gets 507, a batch waits, live requests do not, and it goes on with room",
  { skip },
  async (t) => {
    const disk = smallDisk(t, 32);
    const run = (texts) =>
      texts.map(({ length }) => Float32Array.from({ length: 4096 }, (_, i) => length + 1 / (i + 3)));
    const model = { name: "m", input: { kind: "text", maxTokens: 9 }, output: { kind: "vector", length: 4096 }, run };
    const settings = { port: 0, logLevel: "silent", batchesDir: join(disk, "batches") };
    const server = await createServer({ models: [model], settings });
    t.after(() => server.close({ graceMs: 0 }));
    const url = `${await server.listen()}/v1`;
    const openai = new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0 });
    const upload = async (text) =>
      openai.files.create({ file: await toFile(Buffer.from(text), "a"), purpose: "batch" });
    const request = (n) => ({ custom_id: `${n}`, method: "POST", url: "/v1/embeddings", body: { input: `text ${n}` } });
    const lines = Array.from({ length: 200 }, (_, n) => `${JSON.stringify(request(n))}\n`).join("");
    const { id } = await upload(lines);
    const filler = join(disk, "filler");
    const leave = (bytes) =>
      writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize - bytes));
    leave(100_000);
    await assert.rejects(upload("x".repeat(1_000_000)), { status: 507 });
    rmSync(filler);
    leave(4_000_000);
    const { id: batch } = await openai.batches.create({
      input_file_id: id,
      endpoint: "/v1/embeddings",
      completion_window: "24h",
    });
    await untilTrue(async () =>
      (await openai.batches.retrieve(batch)).metadata?.sheaf_paused?.includes("cannot be written"),
    );
    assert.equal((await openai.embeddings.create({ model: "m", input: "live" })).data.length, 1);
    rmSync(filler);
    await untilTrue(async () => (await openai.batches.retrieve(batch)).status === "completed");
    const ended = await openai.batches.retrieve(batch);
    const text = await (await openai.files.content(ended.output_file_id)).text();
    assert.equal(
      new Set(
        text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line).custom_id),
      ).size,
      200,
    );
  },
);

test("a record on a full disk: it ends with a warning, and requests go on", { skip }, async (t) => {
  const disk = smallDisk(t, 1);
  const model = { name: "m", input: { kind: "json" }, output: { kind: "json" }, run: async (items) => items };
  const settings = { port: 0, logLevel: "warn", recordFile: join(disk, "record.jsonl"), maxBatchSize: 1 };
  const server = await createServer({ models: [model], settings });
  t.after(() => server.close({ graceMs: 0 }));
  const warned = new Promise(
    (resolve) => (server.app.log.warn = (facts, text) => text.includes("recorded") && resolve(text)),
  );
  const url = await server.listen();
  const body = JSON.stringify({ inputs: Array.from({ length: 1000 }, (_, i) => i) });
  const post = () => fetch(`${url}/infer`, { method: "POST", headers: { "content-type": "application/json" }, body });
  let isFull = false;
  void warned.then(() => (isFull = true));
  while (!isFull) assert.equal((await post()).status, 200);
  assert.match(await warned, /calls are no longer recorded: ENOSPC/);
  assert.equal((await post()).status, 200);
  await server.close();
  // The last line is whole.
  const records = await readRecords([readFileSync(settings.recordFile, "utf8").split("\n")]);
  assert.ok(records.get("m").runs.length > 100);
});

// nats-server 2.15 confirms nothing more on a full disk, and goes on so when there is room again; 2.10 to 2.12 refuse.
test(
  "NATS on a full disk: calls are refused at once, with the reason, until it is restarted with room",
  { skip: skip || (whyNoNats() ?? false) },
  async (t) => {
    const disk = smallDisk(t, 40);
    const settings = join(disk, "nats.conf");
    writeFileSync(settings, "jetstream { max_file_store: 1000GB, max_memory_store: 1000GB }\n");
    const nats = await startNats(["-c", settings, "-sd", join(disk, "store")]);
    t.after(() => nats.stop());
    const open = () => connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    const [near, far] = [await open(), await open()];
    t.after(() => Promise.all([near.close(), far.close()]));
    const warnings = [];
    const onWarning = (text) => warnings.push(text);
    const patient = { timeoutMs: 600_000, maxAgeMs: 600_000 };
    const front = natsFrontEnd({ connection: near, headers, queue: "full", onWarning, ...patient });
    let run = () => undefined;
    const hasRoom = new Promise((resolve) => (run = resolve));
    const worker = natsWorker(
      createBatcher(async (texts) => (await hasRoom, texts.map(({ length }) => length)), { maxBatchSize: 1 }),
      { connection: far, headers, queue: "full", maxAgeMs: 600_000 },
    );
    t.after(() => worker.drain({ graceMs: 0 }));
    t.after(() => front.close({ graceMs: 0 }));
    await Promise.all([worker.ready(), front.ready()]);
    const filler = join(disk, "filler");
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - 100_000)));

    const text = "x".repeat(20_000);
    const calls = Promise.allSettled(Array.from({ length: 14 }, () => front(text)));
    await untilTrue(() => front.unavailableReason !== undefined);
    assert.match(
      front.unavailableReason,
      /JetStream (confirms no items; .*disk is full|refuses items \(.*no space left)/,
    );
    await assert.rejects(front(text), {
      code: "UNAVAILABLE",
      message: /disk is full, until it is restarted|no space left/,
    });
    assert.equal(warnings.filter((warning) => /takes no items/.test(warning)).length, 1, warnings.join("\n"));

    rmSync(filler);
    await nats.restart();
    run();
    await untilTrue(() => front.unavailableReason === undefined);
    assert.equal(await front(text), text.length);
    for (const call of await calls)
      if (call.status === "rejected") assert.equal(call.reason.code, "UNAVAILABLE");
      else assert.equal(call.value, text.length);
  },
);

/** `freed` brings the database back, where a full disk has ended it. */
async function survives(t, disk, client, freed = () => undefined) {
  t.mock.method(console, "warn", () => undefined);
  const log = batchLog(client, { flushIntervalMs: 10, maxBufferedRecords: 500 });
  t.after(() => log.close({ graceMs: 0 }));
  await log.createTable();
  const batcher = createBatcher((items) => items, { maxBatchSize: 1, concurrency: 50, name: "watched" });
  log.watch(batcher);
  const filler = join(disk, "filler");
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - 100_000)));
  let watched = 0;
  // Each batch is a row of some 200 bytes: what is left of the disk is soon gone.
  await untilTrue(async () => {
    watched += (await batcher.many(Array.from({ length: 200 }, (_, i) => i))).length;
    return log.stats().lastError !== undefined && log.stats().dropped > 0;
  });
  assert.ok(log.stats().buffered <= 500, `${log.stats().buffered} buffered`);
  assert.deepEqual([batcher.stats().items.ok, batcher.stats().items.error], [watched, 0]);

  rmSync(filler);
  await freed();
  await untilTrue(() => log.stats().buffered === 0);
  const { written, dropped, refused } = await log.close();
  assert.deepEqual([written + dropped, refused], [watched, 0]);
  const { rows } = await client.query("SELECT count(*)::int AS n FROM batch_metrics", []);
  assert.equal(rows[0].n, written);
}

/** A disk of so many megabytes, in memory. */
function smallDisk(t, megabytes) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder]);
  chmodSync(folder, 0o777);
  t.after(() => {
    execFileSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Only root may mount, and in many containers not even root: no failure, also on CI, but never silently. */
function whyNoMount() {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return false;
  } catch {
    console.error("SKIPPED: no small disk can be mounted here, so that none can be full");
    return "no disk can be mounted here";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
