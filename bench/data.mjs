/**
 * `npm run bench -- data [--items 2000] [--rounds 5] [--fsync on] [--only postgres,settings,pglite,vectors]`: what batching
 * gains where rows and vectors are written. 2,000 single inserts, one after the other and all at once through the client
 * itself, beside the same calls through Sheaf and beside UNNEST by hand, on PostgreSQL (its own, started here) with `pg`
 * and postgres.js, and on PGlite; upserts into pgvector and LanceDB; and the settings that people start with, a window of
 * 50 ms or 100 ms, beside none. The variants of a store take turns, round by round; figures are medians.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { fixedWindow } from "sheaf";
import { insertBatcher } from "sheaf/adapters/postgres";
import { lanceDbStore, pgvectorStore } from "sheaf/adapters/vector-store";
import { startPostgres } from "../test/integration/lib/postgres.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    items: { type: "string", default: "2000" },
    rounds: { type: "string", default: "5" },
    fsync: { type: "string", default: "on" },
    only: { type: "string", default: "postgres,settings,pglite,vectors" },
  },
});
const items = integer("items", 10, 100_000);
const rounds = integer("rounds", 1, 100);
const parts = values.only.split(",");
const dimensions = 384;
const createEvents = `CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, score float8, body jsonb, at timestamptz)`;

const manifest = fileURLToPath(new URL("../test/integration/package.json", import.meta.url));
const folder = dirname(manifest);
if (!existsSync(join(folder, "node_modules"))) {
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" });
  if (status !== 0) process.exit(1);
}
const { resolve } = createRequire(manifest);
const load = (name) => import(pathToFileURL(resolve(name)).href);

console.log(
  `${machine()}\nnpm run bench -- data --items ${items} --rounds ${rounds} --fsync ${values.fsync} --only ${values.only}\n`,
);
if (parts.includes("postgres") || parts.includes("settings")) await onPostgres();
if (parts.includes("pglite")) await onPglite();
if (parts.includes("vectors")) await onVectors();

async function onPostgres() {
  const server = await startPostgres({ fsync: values.fsync, max_connections: "60" });
  const pg = (await load("pg")).default;
  const postgres = (await load("postgres")).default;
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on("error", () => undefined); // An idle connection, when the server ends.
  const sql = postgres(server.url, { onnotice: () => undefined });
  await pool.query(createEvents);
  try {
    if (parts.includes("postgres")) {
      const query = (text, parameters) => pool.query(text, parameters);
      await compareInserts(`pg on PostgreSQL, fsync ${values.fsync}`, pool, query, 10);
      const unsafe = (text, parameters) => sql.unsafe(text, parameters, { prepare: true });
      await compareInserts(`postgres.js on PostgreSQL, fsync ${values.fsync}`, sql, unsafe, undefined);
    }
    if (parts.includes("settings")) await compareSettings(pool);
  } finally {
    await Promise.all([pool.end(), sql.end()]);
    await server.close();
  }
}

async function onPglite() {
  const { PGlite } = await load("@electric-sql/pglite");
  const db = await PGlite.create();
  await db.exec(createEvents);
  await compareInserts("PGlite in memory", db, (text, parameters) => db.query(text, parameters), undefined);
  await db.close();
}

async function compareInserts(title, client, query, target) {
  const single = (row) =>
    query("INSERT INTO events (kind, score, body, at) VALUES ($1, $2, $3, $4) RETURNING *", valuesOf(row));
  const batched = (options) => async (rows) => {
    const insert = insertBatcher(client, { table: "events", maxQueueSize: Infinity, ...options() });
    await Promise.all(rows.map((row) => insert(row)));
    await insert.close();
  };
  const variants = {
    "single, one after the other": async (rows) => {
      for (const row of rows) await single(row);
    },
    "single, all at once": (rows) => Promise.all(rows.map(single)),
    "Sheaf, its defaults (500, no window)": batched(() => ({})),
    "Sheaf, 500 and a window of 50 ms": batched(() => ({ policy: fixedWindow(), maxWaitMs: 50 })),
    "Sheaf, batches of 100": batched(() => ({ maxBatchSize: 100 })),
    "Sheaf, batches of 2000": batched(() => ({ maxBatchSize: 2000 })),
    "by hand, UNNEST of 500": async (rows) => {
      for (let at = 0; at < rows.length; at += 500) await byHand(query, rows.slice(at, at + 500));
    },
  };
  const truncate = () => query("TRUNCATE events", []);
  const ms = await takeTurns(variants, truncate, () => rowsOf(items));
  print(
    title,
    ms,
    items,
    target === undefined ? undefined : { variant: "Sheaf, its defaults (500, no window)", target },
  );
}

/** A stream of inserts, as of a server: what a window costs a caller, and what it saves the database. */
async function compareSettings(pool) {
  const variants = {
    "no window, 500": {},
    "window 50 ms, 500": { policy: () => fixedWindow(), maxWaitMs: 50 },
    "no window, 500, one at a time": { concurrency: 1 },
  };
  for (const ratePerS of [20, 1000]) {
    const count = Math.min(items, 2 * ratePerS);
    const latencies = Object.fromEntries(
      Object.keys(variants).map((name) => [name, { p50: [], p99: [], batches: [] }]),
    );
    for (let round = 0; round < rounds; round++) {
      for (const [name, { policy, ...options }] of rotated(Object.entries(variants), round)) {
        await pool.query("TRUNCATE events");
        const insert = insertBatcher(pool, { table: "events", ...options, ...(policy && { policy: policy() }) });
        await insert(rowsOf(1)[0]);
        const latenciesMs = await openLoop(rowsOf(count), ratePerS, insert);
        await insert.close();
        latenciesMs.sort((a, b) => a - b);
        latencies[name].p50.push(latenciesMs[count >> 1]);
        latencies[name].p99.push(latenciesMs[Math.floor(count * 0.99)]);
        latencies[name].batches.push(insert.stats().batches - 1);
      }
    }
    const rows = [[`${ratePerS} inserts/s, ${count} of them`, "p50 ms", "p99 ms", "statements", "rows each"]];
    for (const [name, { p50, p99, batches }] of Object.entries(latencies)) {
      const statements = median(batches);
      rows.push([name, median(p50).toFixed(1), median(p99).toFixed(1), statements, (count / statements).toFixed(1)]);
    }
    console.log(`### pg on PostgreSQL, fsync ${values.fsync}, a stream\n\n${table(rows)}\n`);
  }
}

async function onVectors() {
  const { PGlite } = await load("@electric-sql/pglite");
  const { vector } = await load("@electric-sql/pglite-pgvector");
  const db = await PGlite.create({ extensions: { vector } });
  await db.exec(
    `CREATE EXTENSION vector; CREATE TABLE docs (id int PRIMARY KEY, embedding vector(${dimensions}), title text)`,
  );
  const text =
    "INSERT INTO docs VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET embedding = EXCLUDED.embedding, title = EXCLUDED.title";
  await compareUpserts("pgvector in PGlite", {
    open: (options) => pgvectorStore(db, { table: "docs", ...options }),
    single: ({ id, vector, payload }) => db.query(text, [id, `[${vector.join(",")}]`, payload.title]),
    reset: () => db.exec("TRUNCATE docs"),
  });
  await db.close();

  const { connect } = await load("@lancedb/lancedb");
  const directory = mkdtempSync(join(tmpdir(), "sheaf-bench-lancedb-"));
  const lance = await connect(directory);
  let docs;
  await compareUpserts("LanceDB on a local disk", {
    open: (options) => lanceDbStore(docs, options),
    single: ({ id, vector, payload }) =>
      docs
        .mergeInsert("id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([{ id, vector, ...payload }]),
    reset: async () => {
      docs = await lance.createTable("docs", [{ id: -1, vector: pointsOf(1)[0].vector, title: "" }], {
        mode: "overwrite",
      });
    },
  });
  lance.close();
  rmSync(directory, { recursive: true });
}

async function compareUpserts(title, { open, single, reset }) {
  const count = Math.min(items, 2000);
  const stored = (options) => async (points) => {
    const store = open({ upserts: { maxQueueSize: Infinity, ...options() } });
    await Promise.all(points.map((point) => store.upsert(point)));
    await store.close();
  };
  // A sample: 2,000 single writes into LanceDB are 2,000 versions of the table, which take minutes.
  const sample = Math.min(count, 200);
  const variants = {
    [`single, one after the other (${sample})`]: async (points) => {
      for (const point of points.slice(0, sample)) await single(point);
    },
    "Sheaf, its defaults (200, no window)": stored(() => ({})),
    "Sheaf, 200 and a window of 100 ms": stored(() => ({ policy: fixedWindow(), maxWaitMs: 100 })),
    "Sheaf, batches of 50": stored(() => ({ maxBatchSize: 50 })),
    "Sheaf, batches of 1000": stored(() => ({ maxBatchSize: 1000 })),
  };
  const ms = await takeTurns(variants, reset, () => pointsOf(count));
  print(`${title}, upserts of ${dimensions} dimensions`, ms, count, undefined, { [Object.keys(variants)[0]]: sample });
}

/** Milliseconds of every variant, one for each round; the order moves on by one, so that none always comes first. */
async function takeTurns(variants, reset, inputs) {
  const ms = Object.fromEntries(Object.keys(variants).map((name) => [name, []]));
  const input = inputs();
  for (const run of Object.values(variants)) {
    await reset();
    await run(input.slice(0, 50)); // Connections, plans, compiled code.
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of rotated(Object.entries(variants), round)) {
      await reset();
      const startedAtMs = performance.now();
      await run(input);
      ms[name].push(performance.now() - startedAtMs);
    }
  }
  return ms;
}

function print(title, ms, count, wanted, samples = {}) {
  const [yardstick] = Object.keys(ms);
  const perItem = (name, round) => ms[name][round] / (samples[name] ?? count);
  const rows = [[`${count} rows`, "ms", "µs a row", `× ${yardstick}`, "target"]];
  for (const name of Object.keys(ms)) {
    const each = ms[name].map((_, round) => perItem(name, round));
    const gain = median(each.map((value, round) => perItem(yardstick, round) / value));
    const verdict = wanted?.variant === name ? `≥ ${wanted.target}: ${gain >= wanted.target ? "met" : "missed"}` : "";
    rows.push([name, median(ms[name]).toFixed(0), (1000 * median(each)).toFixed(0), gain.toFixed(1), verdict]);
  }
  console.log(`### ${title}\n\n${table(rows)}\n`);
}

/** Calls at their own times, whatever happens to earlier ones. */
async function openLoop(rows, ratePerS, insert) {
  const startedAtMs = performance.now();
  const calls = [];
  for (const [i, row] of rows.entries()) {
    const dueAtMs = startedAtMs + (1000 * i) / ratePerS;
    while (performance.now() < dueAtMs) await sleep(Math.max(1, dueAtMs - performance.now()));
    calls.push(insert(row).then(() => performance.now() - dueAtMs));
  }
  return Promise.all(calls);
}

function byHand(query, rows) {
  const columns = [0, 1, 2, 3].map((column) => rows.map((row) => String(valuesOf(row)[column])));
  const text = `INSERT INTO events (kind, score, body, at)
    SELECT a, b::float8, c::jsonb, d::timestamptz FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS s(a, b, c, d) RETURNING *`;
  return query(text, columns);
}

function rowsOf(count) {
  const at = "2026-01-01T00:00:00.000Z";
  return Array.from({ length: count }, (_, i) => ({
    kind: `kind ${i % 10}`,
    score: i / 7,
    body: { user: i, tags: ["a", "b"] },
    at,
  }));
}

function valuesOf({ kind, score, body, at }) {
  return [kind, score, JSON.stringify(body), at];
}

function pointsOf(count) {
  return Array.from({ length: count }, (_, id) => ({
    id,
    vector: Array.from({ length: dimensions }, (_, i) => Math.sin(id * 12.9 + i)),
    payload: { title: `title ${id}` },
  }));
}

function rotated(entries, by) {
  return entries.map((_, i) => entries[(i + by) % entries.length]);
}

function integer(name, least, most) {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  console.error(`--${name} must be an integer from ${least} to ${most}, got ${JSON.stringify(values[name])}`);
  process.exit(2);
}
