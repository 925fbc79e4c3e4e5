// sheaf/adapters/batch-log on PGlite, its embedded default, and on a PostgreSQL that goes away and comes back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import { createBatcher } from "sheaf";
import { manualClock } from "sheaf/testing";
import { batchLog, batchLogTableSql, hourlyReportSql } from "sheaf/adapters/batch-log";
import { codeBlocks } from "../../scripts/lib/markdown.mjs";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";
import { untilTrue } from "./lib/until.mjs";

const double = (options) => createBatcher((numbers) => numbers.map((n) => 2 * n), { name: "double", ...options });

describe("on PGlite", () => {
  let db;
  before(async () => {
    db = await PGlite.create();
  });
  after(() => db.close());

  test("every batch of a watched batcher is one row, as its record says", async () => {
    const log = batchLog(db);
    await log.createTable();
    await log.createTable(); // A second time it does nothing.
    const batcher = double({ maxBatchSize: 10, concurrency: 1 });
    const records = [];
    batcher.subscribe((record) => records.push(record));
    log.watch(batcher, { service: "numbers", maxBatchSize: 10 });
    const failing = createBatcher(
      () => {
        throw new Error("down");
      },
      { name: "failing" },
    );
    log.watch(failing);
    const startedAt = Date.now();
    await batcher.many(Array.from({ length: 95 }, (_, i) => i));
    await assert.rejects(failing(1), /down/);
    await log.flush();
    const { rows } = await db.query("SELECT * FROM batch_metrics ORDER BY service DESC, batch_id");
    assert.equal(rows.length, records.length + 1);
    records.forEach((record, i) => {
      assert.equal(rows[i].service, "numbers");
      assert.equal(rows[i].batch_size, record.size);
      assert.equal(rows[i].max_batch_size, 10);
      assert.equal(rows[i].wait_time_ms, record.queueWaitMs.mean);
      assert.equal(rows[i].max_wait_time_ms, record.queueWaitMs.max);
      assert.equal(rows[i].processing_time_ms, record.runMs);
      assert.deepEqual([rows[i].reason, rows[i].outcome, rows[i].error_code], [record.reason, "ok", null]);
      assert.deepEqual([rows[i].failed_items, rows[i].extra_runs], [0, 0]);
      assert.ok(rows[i].created_at >= startedAt && rows[i].created_at <= Date.now());
    });
    const last = rows.at(-1);
    assert.deepEqual(
      [last.service, last.outcome, last.max_batch_size, last.failed_items],
      ["failing", "error", null, 1],
    );
    const stats = await log.close();
    assert.deepEqual(stats, { buffered: 0, written: rows.length, dropped: 0, refused: 0, lastError: undefined });
    await batcher(1);
    assert.equal((await db.query("SELECT * FROM batch_metrics")).rows.length, rows.length, "close ends the watch");
  });

  test("18 bad rows of 5,000: the report counts them, and no batch as failed", async () => {
    const clock = manualClock();
    const insert = createBatcher(
      (rows) =>
        new Promise((resolve, reject) => {
          const isBad = rows.some((row) => row % 278 === 77);
          clock.after(10, () => (isBad ? reject(new Error("bad row")) : resolve(rows)));
        }),
      { name: "orders", clock, maxBatchSize: 313, concurrency: 1, onBatchError: "bisect" },
    );
    let runs = 0;
    insert.subscribe(({ extraRuns }) => (runs += 1 + extraRuns));
    const log = batchLog(db, { table: "bisected" });
    await log.createTable();
    log.watch(insert);
    const settling = insert.settle(Array.from({ length: 5000 }, (_, i) => i));
    await clock.advanceAsync(10_000);
    assert.equal((await settling).filter(({ status }) => status === "fulfilled").length, 4982);
    await log.flush();
    const [{ batches, items, failed_batches, failed_items, extra_runs, mean_processing_ms }] = await log.hourlyReport();
    assert.deepEqual({ batches, items, failed_batches, failed_items }, { batches: 16, items: 5000, failed_batches: 0, failed_items: 18 }); // prettier-ignore
    assert.equal(extra_runs, runs - batches);
    assert.ok(Math.abs(mean_processing_ms - (10 * runs) / batches) < 0.01, `${mean_processing_ms}`);
    const { rows } = await db.query("SELECT DISTINCT outcome FROM bisected WHERE failed_items > 0");
    assert.deepEqual(rows, [{ outcome: "partial" }]);
    await log.close();
  });

  test("the snippet of docs/guide/databases.md prints what stands below it", async (t) => {
    const blocks = codeBlocks(readFileSync(new URL("../../docs/guide/databases.md", import.meta.url), "utf8"));
    const { text, output } = blocks.find((block) => block.text.includes("batchLog(pool)"));
    const own = await PGlite.create();
    t.after(() => own.close());
    const insertOrder = createBatcher((orders) => orders, { maxBatchSize: 500, concurrency: 1 });
    const orders = Array.from({ length: 1000 }, (_, id) => ({ id }));
    const printed = [];
    const scope = { batchLog, pool: own, insertOrder, orders, console: { log: (line) => printed.push(line) } };
    const AsyncFunction = (async () => undefined).constructor;
    await new AsyncFunction(...Object.keys(scope), text.replace(/^import .*$/m, ""))(...Object.values(scope));
    assert.equal(printed.join("\n"), output.trim());
  });

  test("the hourly report: figures worked out by hand", async () => {
    await db.exec("CREATE SCHEMA ops");
    for (const text of batchLogTableSql({ schema: "ops", table: "log" })) await db.exec(text);
    await db.exec(`
      INSERT INTO ops.log (created_at, service, batch_size, max_batch_size, wait_time_ms, processing_time_ms, outcome, failed_items, extra_runs)
      SELECT date_trunc('hour', now()) - interval '1 hour' * h + interval '1 second', service, size, max, wait, run, outcome, failed, extra
      FROM (VALUES (0, 'a', 10, 10, 1.0, 20.0, 'partial', 2, 7), (0, 'a', 30, 50, 5.0, 40.0, 'error', 30, 0), (0, 'b', 1, NULL, 0.0, 3.0, 'ok', 0, 0),
        (2, 'a', 4, 8, 2.0, 8.0, 'ok', 1, 0), (30, 'a', 9, 9, 9.0, 9.0, 'ok', 0, 0)) AS v (h, service, size, max, wait, run, outcome, failed, extra)`);
    const log = batchLog(db, { schema: "ops", table: "log" });
    const report = await log.hourlyReport();
    const { hour } = report[0];
    assert.equal(hour.getMinutes() + hour.getSeconds(), 0);
    assert.deepEqual(report, [
      { hour, service: "a", batches: 2, items: 40, mean_batch_size: 20, fill_rate: 40 / 60, mean_wait_ms: 4, p95_wait_ms: 4.8,
        mean_processing_ms: 30, p95_processing_ms: 39, processing_ms_per_item: 1.5, failed_batches: 1, failed_items: 32, extra_runs: 7 },
      { hour, service: "b", batches: 1, items: 1, mean_batch_size: 1, fill_rate: null, mean_wait_ms: 0, p95_wait_ms: 0,
        mean_processing_ms: 3, p95_processing_ms: 3, processing_ms_per_item: 3, failed_batches: 0, failed_items: 0, extra_runs: 0 },
      { hour: new Date(hour - 2 * 3_600_000), service: "a", batches: 1, items: 4, mean_batch_size: 4, fill_rate: 0.5,
        mean_wait_ms: 2, p95_wait_ms: 2, mean_processing_ms: 8, p95_processing_ms: 8, processing_ms_per_item: 2, failed_batches: 0, failed_items: 1, extra_runs: 0 },
    ]); // prettier-ignore
    assert.equal((await log.hourlyReport({ hours: 48 })).length, 4);
    await assert.rejects(log.hourlyReport({ hours: 0 }), /hours must be an integer >= 1, got 0/);
    assert.throws(
      () => batchLog(db, { maxBufferedRecords: "10" }),
      /maxBufferedRecords must be an integer >= 1, got "10"/,
    );
    assert.throws(() => batchLog(db, { flushIntervalMs: -1 }), /flushIntervalMs must be a number >= 0, got -1/);
    assert.match(hourlyReportSql({ table: 'a"b' }), /FROM "a""b"/);
  });
});

describe("on PostgreSQL", { skip: skipWithoutPostgres }, () => {
  let server;
  let pool;
  before(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 1000 });
    pool.on("error", () => undefined);
  });
  after(async () => {
    await pool.end();
    await server.close();
  });
  /** Ended with its test, so that a failure leaves nothing that tries on. */
  const open = (t, client, options) => {
    const log = batchLog(client, options);
    t.after(() => log.close({ graceMs: 0 }));
    return log;
  };
  const stored = async () => (await pool.query("SELECT service, batch_id FROM batch_metrics")).rows;

  test("while the database is away nothing blocks; what the buffer holds is written after, once, and the rest is counted", async (t) => {
    const warnings = t.mock.method(console, "warn", () => undefined);
    const log = open(t, pool, { maxBufferedRecords: 20, flushIntervalMs: 10 });
    await log.createTable();
    const batcher = double({ maxBatchSize: 1 });
    log.watch(batcher);
    await batcher(1);
    await untilTrue(() => log.stats().written === 1);

    await server.stop("SIGQUIT");
    t.after(() => server.start());
    await batcher(2);
    await untilTrue(() => log.stats().lastError !== undefined);
    const results = await batcher.many(Array.from({ length: 50 }, (_, i) => i));
    assert.equal(results.length, 50);
    assert.ok(log.stats().dropped > 0);
    assert.ok(log.stats().buffered <= 20, `${log.stats().buffered} buffered`);

    await server.start();
    await untilTrue(() => log.stats().buffered === 0);
    const { written, dropped, refused, lastError } = log.stats();
    assert.deepEqual({ sum: written + dropped, refused, lastError }, { sum: 52, refused: 0, lastError: undefined });
    const rows = await stored();
    assert.equal(rows.length, written);
    assert.equal(new Set(rows.map(({ batch_id }) => batch_id)).size, written);
    assert.equal(warnings.mock.callCount(), 1, "one warning for one outage");
    const [warning] = warnings.mock.calls[0].arguments;
    assert.match(warning, /^batch log: cannot write; it keeps up to 20 records .*: /);
    assert.ok(warning.length < 600, "the rows of a statement stand in no warning");
    await log.close();
  });

  test("a statement whose answer was lost is sent again and stored once", async (t) => {
    t.mock.method(console, "warn", () => undefined);
    await pool.query("TRUNCATE batch_metrics");
    let lost = 0;
    const losing = {
      async query(text, values) {
        const result = await pool.query(text, values);
        if (text.includes("INSERT") && lost++ === 0) throw new Error("Connection terminated unexpectedly");
        return result;
      },
    };
    const log = open(t, losing, { flushIntervalMs: 1 });
    const batcher = double();
    log.watch(batcher);
    await batcher(1);
    await untilTrue(() => log.stats().written === 1);
    assert.equal(lost, 2);
    assert.equal((await stored()).length, 1);
    await log.close();
  });

  test("closed while the database is away, it gives up after graceMs and says how many records were lost", async (t) => {
    t.mock.method(console, "warn", () => undefined);
    const log = open(t, pool, { flushIntervalMs: 1 });
    const batcher = double({ maxBatchSize: 1 });
    log.watch(batcher);
    await server.stop();
    t.after(() => server.start());
    await batcher.many([1, 2, 3]);
    const { written, dropped, buffered, refused } = await log.close({ graceMs: 100 });
    assert.deepEqual({ written, dropped, buffered, refused }, { written: 0, dropped: 3, buffered: 0, refused: 0 });
  });
});
