// sheaf/adapters/vector-store: pgvector in PGlite (also over the wire, with pg and postgres.js), LanceDB, and the requests
// that the official Qdrant client makes of it. No Qdrant server runs here: see lib/qdrant-receiver.mjs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { connect } from "@lancedb/lancedb";
import { QdrantClient } from "@qdrant/js-client-rest";
import { Field, FixedSizeList, Float32, Int32, Schema, Utf8 } from "apache-arrow";
import pg from "pg";
import postgres from "postgres";
import { lanceDbStore, optimistic, pgvectorStore, qdrantStore } from "sheaf/adapters/vector-store";
import { fixedWindow } from "sheaf";
import { startReceiver } from "./lib/qdrant-receiver.mjs";

const dimensions = 8;
const unit = (seed) => {
  const values = Array.from({ length: dimensions }, (_, i) => Math.sin(seed * 12.9898 + i * 78.233));
  const norm = Math.hypot(...values);
  return values.map((value) => Math.fround(value / norm));
};
const cosine = (a, b) => 1 - a.reduce((sum, x, i) => sum + x * b[i], 0) / (Math.hypot(...a) * Math.hypot(...b));
const close = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-5, `${actual} is not ${expected}`);

let db;
let lance;
let lanceFolder;
let receiver;
before(async () => {
  db = await PGlite.create({ extensions: { vector } });
  await db.exec("CREATE EXTENSION vector");
  lanceFolder = mkdtempSync(join(tmpdir(), "sheaf-lancedb-"));
  lance = await connect(lanceFolder);
  receiver = await startReceiver(dimensions);
});
after(async () => {
  await db.close();
  lance.close();
  rmSync(lanceFolder, { recursive: true });
  await receiver.close();
});

const createPgTable = () =>
  db.exec(`DROP TABLE IF EXISTS docs;
    CREATE TABLE docs (id int PRIMARY KEY, embedding vector(${dimensions}), title text, tenant text)`);
const createLanceTable = () =>
  lance.createEmptyTable(
    "docs",
    new Schema([
      new Field("id", new Int32(), false),
      new Field("vector", new FixedSizeList(dimensions, new Field("item", new Float32(), true)), true),
      new Field("title", new Utf8(), true),
      new Field("tenant", new Utf8(), true),
    ]),
    { mode: "overwrite" },
  );

/** Each opens a store over an empty collection `docs`; `filter(tenant)` is a filter in its own words. */
const stores = {
  pgvector: {
    filter: (tenant) => ({ tenant }),
    async open(options) {
      await createPgTable();
      return pgvectorStore(db, { table: "docs", ...options });
    },
  },
  LanceDB: {
    filter: (tenant) => `tenant = '${tenant}'`,
    async open(options) {
      return lanceDbStore(await createLanceTable(), options);
    },
  },
  "Qdrant's REST shape": {
    filter: (tenant) => ({ must: [{ key: "tenant", match: { value: tenant } }] }),
    async open(options) {
      receiver.points.clear();
      const client = new QdrantClient({ url: `http://127.0.0.1:${receiver.port}`, checkCompatibility: false });
      return qdrantStore(client, { collection: "docs", ...options });
    },
  },
};

const pointOf = (id) => ({ id, vector: unit(id), payload: { title: `title ${id}`, tenant: id % 2 ? "odd" : "even" } });

for (const [name, { filter, open: openStore }] of Object.entries(stores)) {
  describe(name, () => {
    const opened = [];
    const open = async (options) => {
      opened.push(await openStore(options));
      return opened.at(-1);
    };
    after(() => Promise.all(opened.map((store) => store.close())));

    test("concurrent upserts share batches, and concurrent queries find what exact search finds", async () => {
      const store = await open();
      const points = Array.from({ length: 300 }, (_, id) => pointOf(id));
      await Promise.all(points.map((point) => store.upsert(point)));
      assert.ok(store.upsert.stats().batches <= 10, `${store.upsert.stats().batches} batches`);
      const queries = Array.from({ length: 40 }, (_, i) => ({ vector: unit(1000 + i), limit: 5 }));
      const answers = await Promise.all(queries.map((query) => store.query(query)));
      assert.ok(store.query.stats().batches < 20, `${store.query.stats().batches} batches`);
      answers.forEach((matches, i) => {
        const exact = points
          .map(({ id, vector }) => ({ id, distance: cosine(vector, queries[i].vector) }))
          .sort((a, b) => a.distance - b.distance)
          .slice(0, 5);
        assert.deepEqual(matches.map(({ id }) => id), exact.map(({ id }) => id)); // prettier-ignore
        matches.forEach(({ distance }, rank) => close(distance, exact[rank].distance));
      });
      assert.deepEqual({ ...answers[0][0].payload }, pointOf(answers[0][0].id).payload);
      await store.close();
      await assert.rejects(store.upsert(pointOf(1)), { code: "CLOSED" });
    });

    test("queries with different filters and limits each get their own answer", async () => {
      const store = await open();
      await store.upsert.many(Array.from({ length: 60 }, (_, id) => pointOf(id)));
      const asked = Array.from({ length: 30 }, (_, i) => ({
        vector: unit(500 + i),
        limit: 1 + (i % 4),
        filter: [undefined, filter("odd"), filter("even")][i % 3],
      }));
      const answers = await Promise.all(asked.map((query) => store.query(query)));
      answers.forEach((matches, i) => {
        assert.equal(matches.length, asked[i].limit);
        const tenant = [undefined, "odd", "even"][i % 3];
        assert.equal(store.query.stats().bisectRuns, 0);
        if (tenant !== undefined) for (const { payload } of matches) assert.equal(payload.tenant, tenant);
      });
    });

    test("the last of several upserts of one id wins, and it is there once", async () => {
      const store = await open({ upserts: { policy: fixedWindow(), maxWaitMs: 20 } });
      const versions = Array.from({ length: 5 }, (_, i) => ({
        ...pointOf(7),
        payload: { title: `v${i}`, tenant: "odd" },
      }));
      await Promise.all([...versions, pointOf(8)].map((point) => store.upsert(point)));
      const matches = await store.query({ vector: unit(7), limit: 10 });
      assert.deepEqual(matches.map(({ id, payload }) => [id, payload.title]).sort(), [[7, "v4"], [8, "title 8"]]); // prettier-ignore
    });

    test("a point of the wrong length fails alone; one that is not a point is refused at the call", async () => {
      const store = await open();
      const points = Array.from({ length: 50 }, (_, id) => pointOf(id));
      points[20] = { ...points[20], vector: [1, 2] };
      points[30] = { ...points[30], vector: [...unit(1).slice(1), Number.NaN] };
      points[40] = { ...points[40], id: "" };
      const outcomes = await store.upsert.settle(points);
      assert.deepEqual(
        outcomes.flatMap(({ status }, i) => (status === "rejected" ? [i] : [])),
        [20, 30, 40],
      );
      assert.match(String(outcomes[20].reason.message), /dimension|Bad Request/);
      assert.match(outcomes[30].reason.message, /vector must hold finite numbers, got NaN at 7/);
      assert.match(outcomes[40].reason.message, /a point needs an id/);
      assert.equal((await store.query({ vector: unit(0), limit: 100 })).length, 47);
      await assert.rejects(
        store.query({ vector: unit(1), limit: 0 }),
        /limit must be an integer from 1 to 10000, got 0/,
      );
      const asked = await store.query.settle([{ vector: unit(1) }, { vector: [1] }, { vector: unit(2) }]);
      assert.deepEqual(asked.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]); // prettier-ignore
    });

    describe("read your writes", () => {
      // A window that would hold a lone write for a minute.
      const patient = () => ({ upserts: { policy: fixedWindow(), maxWaitMs: 60_000 } });
      const nearest = async (store, id) => (await store.query({ vector: unit(id), limit: 1 }))[0]?.id;

      test('priority: "immediate" goes at once, and takes along what waits', async () => {
        const store = await open(patient());
        const other = store.upsert(pointOf(1));
        await store.upsert(pointOf(2), { priority: "immediate" });
        assert.equal(await nearest(store, 2), 2);
        await other;
        assert.equal(await nearest(store, 1), 1);
      });

      test("waiting for the flush: what was called before it can be found after it", async () => {
        const store = await open(patient());
        const writes = [1, 2, 3].map((id) => store.upsert(pointOf(id)));
        await store.upsert.flush();
        assert.deepEqual([await nearest(store, 1), await nearest(store, 3)], [1, 3]);
        await Promise.all(writes);
      });

      test("optimistic local state: found at once, taken back when the write fails", async () => {
        const store = await open(patient());
        const seen = optimistic(store, { matches: ({ payload }) => payload.tenant === "odd" });
        const first = seen.upsert(pointOf(1));
        const written = seen.upsert({ ...pointOf(2), payload: { title: "new", tenant: "even" } });
        assert.deepEqual([seen.pending, seen.get(2).payload.title], [2, "new"]);
        const [found] = await seen.query({ vector: unit(2), limit: 1 });
        assert.deepEqual([found.id, found.payload.title], [2, "new"]);
        close(found.distance, 0);
        assert.equal((await seen.query({ vector: unit(2), limit: 1, filter: filter("odd") }))[0].id, 1);
        assert.deepEqual(await store.query({ vector: unit(2) }), [], "the store itself has it not");
        await store.upsert.flush();
        await Promise.all([first, written]);
        assert.equal(seen.pending, 0);
        const before = await seen.query({ vector: unit(2), limit: 2 });

        const refused = seen.upsert({ ...pointOf(2), vector: [1] });
        const replaced = seen.upsert({ ...pointOf(3), vector: unit(2) });
        assert.equal((await seen.query({ vector: unit(2), limit: 3 }))[0].id, 3);
        await store.upsert.flush();
        await assert.rejects(refused);
        await replaced;
        assert.equal(seen.pending, 0);
        assert.deepEqual(
          (await seen.query({ vector: unit(2), limit: 3 })).filter(({ id }) => id !== 3),
          before,
        );
      });
    });
  });
}

test("pgvector: queries use the index, each with its own ORDER BY and LIMIT", async () => {
  const explained = [];
  await createPgTable();
  await db.exec("CREATE INDEX ON docs USING hnsw (embedding vector_cosine_ops)");
  const watching = {
    async query(text, values) {
      if (text.includes("LATERAL")) {
        await db.exec("SET enable_seqscan = off; SET enable_sort = off");
        explained.push(...(await db.query(`EXPLAIN ${text}`, values)).rows.map((row) => row["QUERY PLAN"]));
      }
      return db.query(text, values);
    },
  };
  const store = pgvectorStore(watching, { table: "docs" });
  await store.upsert.many(Array.from({ length: 20 }, (_, id) => pointOf(id)));
  await store.query.many([{ vector: unit(1), limit: 2 }, { vector: unit(2), limit: 3, filter: undefined }]); // prettier-ignore
  await db.exec("RESET enable_seqscan; RESET enable_sort");
  assert.ok(
    explained.some((line) => /Index Scan using docs_embedding_idx/.test(line)),
    explained.join("\n"),
  );
});

test("pgvector and LanceDB: l2 and dot distances are those of their definitions", async () => {
  await createPgTable();
  const table = await createLanceTable();
  const [a, b] = [unit(1).map((x) => 2 * x), unit(2)];
  for (const metric of ["l2", "dot"]) {
    const expected = metric === "l2" ? Math.hypot(...a.map((x, i) => x - b[i])) : -a.reduce((sum, x, i) => sum + x * b[i], 0); // prettier-ignore
    for (const store of [pgvectorStore(db, { table: "docs", metric }), lanceDbStore(table, { metric })]) {
      await store.upsert({ id: 1, vector: Float32Array.from(b) });
      const [match] = await store.query({ vector: a });
      close(match.distance, expected);
      const [laid] = await optimistic(store).query({ vector: a });
      close(laid.distance, expected);
    }
  }
});

test("pgvector through pg and postgres.js, over PostgreSQL's wire protocol", async () => {
  await createPgTable();
  const server = new PGLiteSocketServer({ db, port: 0, host: "127.0.0.1" });
  const listening = new Promise((resolve) =>
    server.addEventListener("listening", ({ detail }) => resolve(detail.port)),
  );
  await server.start();
  const url = `postgres://postgres@127.0.0.1:${await listening}/postgres`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const viaPg = pgvectorStore(pool, { table: "docs" });
  await viaPg.upsert.many(Array.from({ length: 30 }, (_, id) => pointOf(id)));
  assert.equal((await viaPg.query({ vector: unit(3) }))[0].id, 3);
  await pool.end();
  const sql = postgres(url, { max: 1 });
  const viaPostgresJs = pgvectorStore(sql, { table: "docs" });
  await viaPostgresJs.upsert.many(Array.from({ length: 30 }, (_, id) => pointOf(100 + id)));
  assert.deepEqual(await viaPostgresJs.query({ vector: unit(3), limit: 1 }), [
    {
      id: 3,
      distance: (await viaPostgresJs.query({ vector: unit(3), limit: 1 }))[0].distance,
      payload: pointOf(3).payload,
    },
  ]);
  await sql.end();
  await server.stop();
});

test("LanceDB: a batch is one new version of the table, where single writes are one each", async () => {
  const table = await createLanceTable();
  const store = lanceDbStore(table);
  const before = await table.version();
  await store.upsert.many(Array.from({ length: 200 }, (_, id) => pointOf(id)));
  await table.checkoutLatest();
  assert.equal((await table.version()) - before, store.upsert.stats().batches);
  assert.ok(store.upsert.stats().batches <= 2);
  await assert.rejects(
    store.upsert({ ...pointOf(1), payload: { titel: "x" } }),
    /has no column "titel"; it has title, tenant/,
  );
});

test("LanceDB: an id is stored once, with overlapping batches, two stores and two handles in turn", async () => {
  const handles = [await createLanceTable(), await lance.openTable("docs")];
  const stores = handles.map((table) => lanceDbStore(table, { upserts: { concurrency: 2, maxBatchSize: 1 } }));
  const point = (title) => ({ ...pointOf(1), payload: { title } });
  // Overlapping.
  await Promise.all(stores.flatMap((store) => ["a", "b", "c"].map((title) => store.upsert(point(title)))));
  assert.equal((await stores[1].query({ vector: unit(1) })).length, 1);
  // In turn, each through a handle that the other one has left behind.
  for (const [index, title] of ["d", "e", "f", "g"].entries()) {
    await stores[index % 2].upsert(point(title));
    const found = await stores[(index + 1) % 2].query({ vector: unit(1) });
    assert.deepEqual(
      found.map(({ id, payload }) => [id, payload.title]),
      [[1, title]],
    );
  }
});

test("LanceDB: with an unenforced primary key two processes may write one table", async () => {
  const table = await createLanceTable();
  await table.setUnenforcedPrimaryKey("id");
  const code = `
    import { once } from "node:events";
    import { connect } from "@lancedb/lancedb";
    import { lanceDbStore } from "sheaf/adapters/vector-store";
    const store = lanceDbStore(await (await connect(process.env.FOLDER)).openTable("docs"));
    console.log("ready");
    await once(process.stdin, "data");
    for (let id = 0; id < 40; id++) await store.upsert({ id, vector: Array(${dimensions}).fill(id + 1) });
    process.exit();`;
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const env = { ...process.env, FOLDER: lanceFolder };
  const writers = [1, 2].map(() => spawn(process.execPath, ["--input-type=module", "-e", code], { cwd, env }));
  await Promise.all(writers.map(({ stdout }) => once(stdout, "data")));
  const ended = writers.map((writer) => once(writer, "exit"));
  for (const { stdin } of writers) stdin.write("go");
  assert.deepEqual(await Promise.all(ended), [[0, null], [0, null]]); // prettier-ignore
  await table.checkoutLatest();
  assert.equal(await table.countRows(), 40);
});

describe("Qdrant's requests", () => {
  const open = () => stores["Qdrant's REST shape"].open();

  test("one PUT that waits for all points of a batch, one POST for all queries", async () => {
    const store = await open();
    receiver.requests.length = 0;
    await store.upsert.many([pointOf(1), pointOf(2)]);
    await store.query.many([{ vector: unit(1), limit: 3 }, { vector: unit(2), filter: { must: [] } }]); // prettier-ignore
    assert.deepEqual(
      receiver.requests.map(({ method, pathname, wait }) => [method, pathname, wait]),
      [["PUT", "/collections/docs/points", "true"], ["POST", "/collections/docs/points/query/batch", null]],
    ); // prettier-ignore
    assert.deepEqual(receiver.requests[0].body, { points: [pointOf(1), pointOf(2)] });
    assert.deepEqual(receiver.requests[1].body, {
      searches: [
        { query: unit(1), limit: 3, with_payload: true },
        { query: unit(2), limit: 10, filter: { must: [] }, with_payload: true },
      ],
    });
  });

  test("a failure of the service fails the batch once; 429 pauses as long as it asks, and the next batch goes", async () => {
    const store = await open();
    receiver.requests.length = 0;
    receiver.fail({ status: 503 });
    const outcomes = await store.upsert.settle([pointOf(1), pointOf(2)]);
    assert.deepEqual(outcomes.map(({ reason }) => reason?.status), [503, 503]); // prettier-ignore
    receiver.fail({ status: 429, headers: { "retry-after": "1" } });
    await assert.rejects(store.upsert(pointOf(1)), { retryAfterMs: 1000 });
    assert.equal(receiver.requests.length, 2);
    await store.upsert(pointOf(3));
    assert.equal(receiver.requests.length, 3);
  });
});

test("anything but a client of its kind is refused", () => {
  assert.throws(() => lanceDbStore({}), /table must be a LanceDB Table/);
  assert.throws(() => qdrantStore({}, { collection: "x" }), /client must be a QdrantClient/);
  assert.throws(
    () => pgvectorStore(db, { table: "docs", metric: "hamming" }),
    /metric must be "cosine" or "l2" or "dot", got "hamming"/,
  );
});
