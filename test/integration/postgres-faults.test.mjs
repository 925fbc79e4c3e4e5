// What happens to callers of sheaf/adapters/postgres when the server, the connection or the process does not hold.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import postgres from "postgres";
import { insertBatcher, upsertBatcher } from "sheaf/adapters/postgres";
import { assertResult } from "../support/result.mjs";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";
import { untilTrue } from "./lib/until.mjs";

const drivers = {
  pg(url) {
    const pool = new pg.Pool({ connectionString: url, application_name: "sheaf" });
    pool.on("error", () => undefined); // An idle connection that the server cuts.
    return { client: pool, close: () => pool.end() };
  },
  "postgres.js"(url) {
    const sql = postgres(url, {
      onnotice: () => undefined,
      connection: { application_name: "sheaf" },
      backoff: () => 0.05,
      // postgres.js 3.4 asks for array types first, and a connection lost in that is a rejection that cannot be caught.
      fetch_types: false,
    });
    return { client: sql, close: () => sql.end({ timeout: 1 }) };
  },
}; // prettier-ignore

let server;
before(async () => {
  if (!skipWithoutPostgres) server = await startPostgres({ deadlock_timeout: "50ms" });
});
after(() => server?.close());

/** A connection of its own, to look and to interfere. */
async function withObserver(use) {
  const observer = new pg.Client({ connectionString: server.url });
  await observer.connect();
  try {
    return await use((text, values) => observer.query(text, values).then(({ rows }) => rows));
  } finally {
    await observer.end();
  }
}

/** Inside a transaction the server shows activity as it was at the first look, unless asked to look again. */
const waitingForLock = (query) => async () => {
  await query("SELECT pg_stat_clear_snapshot()");
  const waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'sheaf' AND wait_event_type = 'Lock'";
  return (await query(waiting)).length > 0;
};
const tally = (outcomes) => ({
  ok: outcomes.filter(({ status }) => status === "fulfilled").length,
  failed: outcomes.filter(({ status }) => status === "rejected").length,
});

for (const [name, open] of Object.entries(drivers)) {
  describe(name, { skip: skipWithoutPostgres }, () => suite(name, open));
}

function suite(name, open) {
  let db;
  before(async () => {
    await withObserver((query) => query("DROP TABLE IF EXISTS items; CREATE TABLE items (id int PRIMARY KEY, n int)"));
    db = open(server.url);
  });
  after(() => db.close());
  const reset = () => withObserver((query) => query("TRUNCATE items"));

  test("a connection lost mid-batch fails that batch's callers, once; nothing is sent again, and the next batch goes", async () => {
    await reset();
    const insert = insertBatcher(db.client, { table: "items", maxBatchSize: 50, concurrency: 1 });
    await withObserver(async (query) => {
      await query("BEGIN; LOCK TABLE items IN EXCLUSIVE MODE");
      const outcomes = insert.settle(Array.from({ length: 120 }, (_, id) => ({ id })));
      await untilTrue(waitingForLock(query));
      await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sheaf' AND wait_event_type = 'Lock'",
      );
      await untilTrue(() => insert.stats().items.error >= 50);
      await query("ROLLBACK");
      assert.deepEqual(tally(await outcomes), { ok: 70, failed: 50 });
      const stored = await query("SELECT id FROM items ORDER BY id");
      assert.deepEqual(
        stored.map(({ id }) => id),
        Array.from({ length: 70 }, (_, i) => 50 + i),
      );
    });
    assert.equal(insert.stats().bisectRuns, 0);
  });

  test("a server restart: every caller is answered, what was answered with a row is stored, and it goes on after", async () => {
    await reset();
    const insert = insertBatcher(db.client, { table: "items", maxBatchSize: 20, maxQueueSize: 100_000 });
    const outcomes = [];
    let id = 0;
    let stopped = false;
    const callers = Array.from({ length: 40 }, async () => {
      while (!stopped) {
        const mine = id++;
        outcomes.push(
          await insert({ id: mine }).then(
            () => ({ id: mine, ok: true }),
            () => ({ id: mine, ok: false }),
          ),
        );
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
    try {
      await untilTrue(() => outcomes.length > 200);
      await server.stop("SIGQUIT"); // As a crash: no connection is ended in order.
      await untilTrue(() => outcomes.some(({ ok }) => !ok));
      await server.start();
      const restartedAt = id;
      await untilTrue(() => outcomes.some(({ id, ok }) => ok && id > restartedAt));
    } finally {
      stopped = true;
      await server.start();
    }
    await Promise.all(callers);
    await insert.close();
    assert.equal(outcomes.length, id);
    const stored = new Set((await withObserver((query) => query("SELECT id FROM items"))).map(({ id }) => id));
    for (const { id, ok } of outcomes)
      if (ok) assertResult(stored.has(id), true, `row ${id} was confirmed and is not there`);
  });

  test("a deadlock fails the batch whole: its callers get 40P01, nothing of it is stored, nothing is bisected", async () => {
    await reset();
    const upsert = upsertBatcher(db.client, { table: "items", key: ["id"], concurrency: 1 });
    await upsert.many([1, 2, 3].map((id) => ({ id, n: 0 })));
    await withObserver(async (query) => {
      // The observer holds 3 and will want 1; the batch gets 1 and wants 3. Its own deadlock check must come first.
      await query("SET deadlock_timeout = '30s'; BEGIN; UPDATE items SET n = -1 WHERE id = 3");
      const outcomes = upsert.settle([1, 2, 3, 4].map((id) => ({ id, n: 7 })));
      await untilTrue(waitingForLock(query));
      const theirs = query("UPDATE items SET n = -1 WHERE id = 1");
      const settled = await outcomes;
      await theirs;
      await query("COMMIT");
      assert.deepEqual(new Set(settled.map(({ reason }) => reason?.code)), new Set(["40P01"]));
      const stored = await query("SELECT * FROM items ORDER BY id");
      assert.deepEqual(stored, [{ id: 1, n: -1 }, { id: 2, n: 0 }, { id: 3, n: -1 }]); // prettier-ignore
    });
    assert.equal(upsert.stats().bisectRuns, 0);
  });

  test("two batchers that upsert the same rows in opposite orders do not deadlock", async () => {
    await reset();
    const ids = Array.from({ length: 200 }, (_, id) => id);
    const one = upsertBatcher(db.client, { table: "items", key: ["id"], concurrency: 2 });
    const other = upsertBatcher(db.client, { table: "items", key: ["id"], concurrency: 2 });
    for (let round = 0; round < 10; round++) {
      const rows = ids.map((id) => ({ id, n: round }));
      await Promise.all([one.many(rows), other.many([...rows].reverse())]);
    }
    assert.equal(one.stats().items.error + other.stats().items.error, 0);
  });

  test("a caller that gives up while it waits is never written; one whose row is under way may be", async () => {
    await reset();
    const insert = insertBatcher(db.client, { table: "items", maxBatchSize: 1, concurrency: 1 });
    await withObserver(async (query) => {
      await query("BEGIN; LOCK TABLE items IN EXCLUSIVE MODE");
      const first = insert({ id: 1 });
      await untilTrue(waitingForLock(query));
      await assert.rejects(insert({ id: 2 }, { signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
      await assert.rejects(insert({ id: 3 }, { timeoutMs: 20 }), { code: "TIMEOUT" });
      await query("ROLLBACK");
      await first;
      await insert.drain();
      assert.deepEqual(await query("SELECT id FROM items"), [{ id: 1 }]);
    });
  });

  const cancels = name === "postgres.js";
  test(`a statement whose callers have all gone ${cancels ? "is cancelled" : "runs to its end"}`, async () => {
    await reset();
    const insert = insertBatcher(db.client, { table: "items" });
    await withObserver(async (query) => {
      await query("BEGIN; LOCK TABLE items IN EXCLUSIVE MODE");
      const controller = new AbortController();
      const gone = insert({ id: 9 }, { signal: controller.signal });
      await untilTrue(waitingForLock(query));
      controller.abort(new Error("gone"));
      await assert.rejects(gone, /gone/);
      if (cancels) await untilTrue(async () => !(await waitingForLock(query)()));
      await query("ROLLBACK");
      await insert.close(); // Does not wait for a statement whose callers have all left.
      const stored = () => query("SELECT id FROM items");
      if (cancels) assert.deepEqual(await stored(), []);
      else await untilTrue(async () => (await stored()).length === 1);
    });
  });

  test("a statement held up past runTimeoutMs: RUN_TIMEOUT; with statement_timeout the server's own word comes first", async () => {
    await reset();
    await withObserver(async (query) => {
      await query("BEGIN; LOCK TABLE items IN EXCLUSIVE MODE");
      const insert = insertBatcher(db.client, { table: "items", runTimeoutMs: 100, concurrency: 1 });
      await assert.rejects(insert({ id: 1 }), { code: "RUN_TIMEOUT" });
      await query("ROLLBACK");
    });
    const url = `${server.url}?options=-c%20statement_timeout%3D50`;
    const patient = open(url);
    try {
      await withObserver(async (query) => {
        await query("BEGIN; LOCK TABLE items IN EXCLUSIVE MODE");
        const insert = insertBatcher(patient.client, { table: "items", runTimeoutMs: 600_000 });
        await assert.rejects(insert({ id: 5 }), { code: "57014" });
        await query("ROLLBACK");
        assert.deepEqual(await query("SELECT id FROM items WHERE id = 5"), []);
      });
    } finally {
      await patient.close();
    }
  });
}

const writer = fileURLToPath(new URL("lib/writer.mjs", import.meta.url));

describe("a process that ends", { skip: skipWithoutPostgres }, () => {
  before(() =>
    withObserver((query) => query("DROP TABLE IF EXISTS items; CREATE TABLE items (id int PRIMARY KEY, n int)")),
  );
  const count = () => withObserver(async (query) => (await query("SELECT count(*)::int AS n FROM items"))[0].n);

  test("SIGTERM with work queued: close() writes it all before the process ends", async () => {
    const child = spawn(process.execPath, [writer, server.url, "0", "5000"], { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout.setEncoding("utf8");
    const ended = once(child, "exit");
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    await untilTrue(() => output.includes("queued"));
    child.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
    assert.equal(await count(), 5000);
    assert.match(output, /stored 5000 failed 0/);
  });

  test("SIGKILL with work queued: what was confirmed is stored, nothing is stored twice, the rest is lost with its callers", async () => {
    const child = spawn(process.execPath, [writer, server.url, "10000", "20000"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    child.stdout.setEncoding("utf8");
    const ended = once(child, "exit");
    let confirmed = 0;
    child.stdout.on("data", (text) => {
      confirmed = Math.max(confirmed, ...[...text.matchAll(/confirmed (\d+)/g)].map(([, n]) => Number(n)));
      if (confirmed > 0) child.kill("SIGKILL");
    });
    await ended;
    const stored = (await count()) - 5000;
    assert.ok(confirmed > 0 && stored >= confirmed && stored <= 20_000, `${confirmed} confirmed, ${stored} stored`);
  });
});
