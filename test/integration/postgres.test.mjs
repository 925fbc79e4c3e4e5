// sheaf/adapters/postgres against PostgreSQL with `pg` and postgres.js, and against PGlite.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import postgres from "postgres";
import { greedy } from "sheaf";
import { insertBatcher, isRowError, lookupBatcher, upsertBatcher } from "sheaf/adapters/postgres";
import { manualClock } from "sheaf/testing";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";

/** Each with `client` for the adapter and `rows(text)` to look around it. */
const clients = {
  async pg(url) {
    const pool = new pg.Pool({ connectionString: url });
    return { client: pool, rows: async (text) => (await pool.query(text)).rows, close: () => pool.end() };
  },
  async "postgres.js"(url) {
    const sql = postgres(url, { onnotice: () => undefined, connection: { TimeZone: "UTC" } });
    return { client: sql, rows: async (text) => [...(await sql.unsafe(text))], close: () => sql.end() };
  },
  async PGlite() {
    const db = await PGlite.create();
    return { client: db, rows: async (text) => (await db.exec(text)).at(-1).rows, close: () => db.close() };
  },
};

/** The ages of people in the order in which they were written, while 25 come for every ten that are. */
async function writtenUnderOverload({ client, rows }, options) {
  const clock = manualClock();
  const insert = insertBatcher(slowed(client, clock), {
    table: "people",
    maxBatchSize: 10,
    concurrency: 1,
    policy: greedy(),
    clock,
    ...options,
  });
  const turns = setInterval(() => clock.advance(0));
  let age = 0;
  const calls = [];
  const arrive = () => {
    for (let i = 0; i < 25; i++) calls.push(insert({ email: `${++age}`, age }));
  };
  insert.subscribe(({ batchId }) => void (batchId < 60 && arrive()));
  arrive();
  for (let known = 0; known < calls.length;) {
    known = calls.length;
    await Promise.all(calls);
  }
  await insert.close();
  clearInterval(turns);
  return (await rows("SELECT age FROM people ORDER BY id")).map((row) => row.age);
}

/** The same client, whose every statement takes 10 ms of the clock, however long it takes here. */
const slowed = (client, clock) =>
  new Proxy(client, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...values) => {
        clock.advance(10);
        return value.apply(target, values);
      };
    },
  });

const isAscending = (numbers) => numbers.every((number, at) => at === 0 || numbers[at - 1] < number);

let server;
before(async () => {
  if (!skipWithoutPostgres) server = await startPostgres();
});
after(() => server?.close());

for (const [name, open] of Object.entries(clients)) {
  describe(name, { skip: name !== "PGlite" && skipWithoutPostgres }, () => suite(open));
}

function suite(open) {
  let db;
  before(async () => {
    db = await open(server?.url);
    await db.rows(`
      DROP SCHEMA IF EXISTS "My.App" CASCADE;
      DROP TABLE IF EXISTS people, every_type, keyed, tagged, guarded, audit;
      DROP DOMAIN IF EXISTS documents; DROP TYPE IF EXISTS mood;
      CREATE TABLE people (id serial PRIMARY KEY, email text NOT NULL UNIQUE, age int CHECK (age >= 0),
        city text DEFAULT 'Bern', note varchar(3));`);
  });
  after(() => db.close());
  const people = async () => db.rows("SELECT * FROM people ORDER BY id");
  const clear = () => db.rows("TRUNCATE people RESTART IDENTITY");
  const insertPeople = (options) => insertBatcher(db.client, { table: "people", ...options });

  test("each caller gets its own row as stored, with its defaults", async () => {
    await clear();
    const insert = insertPeople();
    const emails = Array.from({ length: 1000 }, (_, i) => `p${(i * 7919) % 1000}@example.org`);
    const rows = await Promise.all(emails.map((email, i) => insert({ email, age: i })));
    rows.forEach((row, i) => {
      assert.deepEqual({ ...row, id: 0 }, { id: 0, email: emails[i], age: i, city: "Bern", note: null });
    });
    assert.deepEqual(new Set(rows.map(({ id }) => id)).size, 1000);
    assert.ok(insert.stats().batches <= 10, `${insert.stats().batches} batches`);
  });

  test("a column that is left out gets its default, null is NULL, also when both wait together", async () => {
    await clear();
    const insert = insertPeople({ returning: ["city"] });
    const rows = await Promise.all([
      insert({ email: "a" }),
      insert({ email: "b", city: null }),
      insert({ email: "c", city: undefined }),
      insert({ email: "d", city: "Rome" }),
    ]);
    assert.deepEqual(rows, [{ city: "Bern" }, { city: null }, { city: "Bern" }, { city: "Rome" }]);
  });

  test("under standing overload rows are written in order of arrival, and with `newest` the newest first", async () => {
    await clear();
    assert.ok(isAscending(await writtenUnderOverload(db)));
    await clear();
    assert.ok(!isAscending(await writtenUnderOverload(db, { overloadOrder: "newest" })));
  });

  test("a row of nothing but defaults is written", async () => {
    await db.rows("CREATE TABLE tagged (id serial PRIMARY KEY, tag text DEFAULT 'none')");
    const insert = insertBatcher(db.client, { table: "tagged" });
    const rows = await Promise.all([insert({}), insert({}), insert({ tag: "x" })]);
    assert.deepEqual(
      rows.map(({ tag }) => tag),
      ["none", "none", "x"],
    );
    assert.deepEqual(new Set(rows.map(({ id }) => id)), new Set([1, 2, 3]));
  });

  test("`returning: []` writes and gives every caller {}", async () => {
    await clear();
    assert.deepEqual(await insertPeople({ returning: [] }).many([{ email: "a" }, { email: "b" }]), [{}, {}]);
    assert.equal((await people()).length, 2);
  });

  test("poison rows fail alone, each with its own SQLSTATE", async () => {
    await clear();
    const insert = insertPeople();
    const poison = new Map([
      [3, [{ email: null }, "23502"]],
      [50, [{ email: "p49" }, "23505"]],
      [77, [{ email: "x", age: -1 }, "23514"]],
      [120, [{ email: "y", age: "many" }, "22P02"]],
      [121, [{ email: "y2", note: "four" }, "22001"]],
      [199, [{ email: "nul\0" }, "22021"]],
    ]);
    const rows = Array.from({ length: 200 }, (_, i) => ({ age: i, note: "n", email: `p${i}`, ...poison.get(i)?.[0] }));
    const outcomes = await insert.settle(rows);
    outcomes.forEach((outcome, i) => {
      const code = poison.get(i)?.[1];
      if (code === undefined) assert.equal(outcome.value?.email, `p${i}`);
      else assert.equal(outcome.reason?.code, code);
    });
    assert.equal((await people()).length, 194);
    assert.ok(insert.stats().bisectRuns > 0);
  });

  test("more poison rows than good ones: still each its own outcome", async () => {
    await clear();
    const rows = Array.from({ length: 100 }, (_, i) => ({ email: `p${i % 10}` }));
    const outcomes = await insertPeople().settle(rows);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      rows.map((_, i) => (i < 10 ? "fulfilled" : "rejected")),
    );
  });

  test('`onBatchError: "fail"` is atomic: one bad row, nothing written, one error for all', async () => {
    await clear();
    const insert = insertPeople({ onBatchError: "fail" });
    const outcomes = await insert.settle([{ email: "a" }, { email: "b" }, { email: "a" }]);
    assert.equal(new Set(outcomes.map(({ reason }) => reason)).size, 1);
    assert.equal(outcomes[0].reason.code, "23505");
    assert.deepEqual(await people(), []);
  });

  test("a wrong row, column or table says what is wrong, and fails alone", async () => {
    await clear();
    const insert = insertPeople();
    const outcomes = await insert.settle([{ email: "a" }, { emial: "b" }, 7, { email: "c", age: {} }]);
    assert.deepEqual(
      outcomes.map(({ reason }) => reason?.message),
      [
        undefined,
        '"people" has no column "emial"; it has id, email, age, city, note',
        "a row must be an object of column names and values, got 7",
        '"age" (integer) cannot hold an object; pass it as PostgreSQL would write it, in a string',
      ],
    );
    await assert.rejects(insertBatcher(db.client, { table: "nowhere" })({ a: 1 }), /"nowhere" does not exist/);
  });

  test("a column that is added later is found", async () => {
    await db.rows("CREATE TABLE keyed (id int PRIMARY KEY)");
    const insert = insertBatcher(db.client, { table: "keyed" });
    await insert({ id: 1 });
    await db.rows("ALTER TABLE keyed ADD COLUMN more text");
    assert.deepEqual(await insert({ id: 2, more: "yes" }), { id: 2, more: "yes" });
    await db.rows("ALTER TABLE keyed RENAME COLUMN more TO other");
    await assert.rejects(insert({ id: 3, more: "gone" }), { code: "42703" });
    await assert.rejects(insert({ id: 3, more: "gone" }), /has no column "more"/);
  });

  test("names with quotes, dots, capitals and a schema are taken literally", async () => {
    await db.rows(`CREATE SCHEMA "My.App";
      CREATE TABLE "My.App"."Order ""x""" ("Group" int PRIMARY KEY, "a;b" text, "ordinal" int)`);
    const table = { schema: "My.App", table: 'Order "x"' };
    const row = { Group: 1, "a;b": "'; DROP TABLE people; --", ordinal: 9 };
    assert.deepEqual(await insertBatcher(db.client, table)(row), row);
    assert.deepEqual(await upsertBatcher(db.client, { ...table, key: ["Group"] })({ ...row, ordinal: 8 }), {
      ...row,
      ordinal: 8,
    });
    assert.deepEqual(await lookupBatcher(db.client, { ...table, key: "Group" })(1), { ...row, ordinal: 8 });
  });

  test("every type comes back as a single insert through the same client would store it", async () => {
    await db.rows(`
      CREATE TYPE mood AS ENUM ('happy', 'it''s, "odd"');
      CREATE DOMAIN documents AS jsonb[];
      CREATE TABLE every_type (id int PRIMARY KEY, i8 int8, f8 float8, n numeric(12, 2), b bool, t text, v varchar(9), c char(3),
        j json, jb jsonb, bin bytea, u uuid, d date, ts timestamp, tz timestamptz, iv interval, ints int[], texts text[],
        grid int[], jbs documents, bins bytea[], tzs timestamptz[], m mood, ip inet, r int4range, bits bit(4));`);
    const when = new Date("2024-03-31T23:30:15.123Z");
    const rows = [
      { i8: 9007199254740993n, f8: 0.1, n: "12345678.90", b: true, t: 'a "quoted" \\ text, {with} NULL', v: "été 🎉", c: "ab" },
      { i8: -1, f8: -0, n: 1.005, b: false, t: "", v: "NULL", c: "abc" },
      { f8: Infinity, n: "NaN", t: "\n\t", tz: when, ts: when, d: when, iv: "1 day 02:00:00" },
      { f8: NaN, bin: Buffer.from([0, 255, 92, 34]), bins: [Buffer.from("a"), null, Buffer.alloc(0)], u: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" },
      { j: { a: [1, null, { b: "\"'\\" }] }, jb: { nested: { deep: [true] } }, jbs: [{ a: 1 }, [1, 2], "text"] },
      { ints: [1, null, -3], texts: ["a,b", 'c"d', "e\\f", "", "NULL", null], grid: [[1, 2], [3, 4]], tzs: [when] },
      { m: 'it\'s, "odd"', ip: "10.0.0.1", r: "[1,5)", bits: "0101", ints: [], texts: [] },
      {},
    ]; // prettier-ignore
    const insert = insertBatcher(db.client, { table: "every_type" });
    const columns = "i8 f8 n b t v c j jb bin u d ts tz iv ints texts grid jbs bins tzs m ip r bits".split(" ");
    // One shape, so that all rows share one statement, NULLs beside values.
    const full = (row, id) => ({ id, ...Object.fromEntries(columns.map((column) => [column, row[column] ?? null])) });
    const batched = await insert.many(rows.map((row, i) => full(row, i)));
    assert.equal(insert.stats().batches, 1);
    for (const [i, row] of rows.entries()) {
      const id = 100 + i;
      await insertAlone(db.client, full(row, id));
      const [expected] = await db.rows(`SELECT * FROM every_type WHERE id = ${id}`);
      assert.deepEqual({ ...batched[i], id }, expected, `row ${i}`);
      // Also what a driver's own reading could hide.
      const texts = async (id) =>
        (await db.rows(`SELECT to_jsonb(e) - 'id' AS e FROM every_type e WHERE id = ${id}`))[0].e;
      assert.deepEqual(await texts(i), await texts(id), `row ${i} as the server sees it`);
    }
    assert.deepEqual(batched[4].jbs, [{ a: 1 }, [1, 2], "text"]);
    assert.equal(typeof batched[4].jb, "object");
  });

  test("a string in a json column is a JSON string, as every other value there is JSON", async () => {
    await db.rows("DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (id int PRIMARY KEY, doc jsonb)");
    const insert = insertBatcher(db.client, { table: "keyed" });
    const docs = ["text", 7, true, [1, "two"], { a: null }, '{"not":"parsed"}'];
    const rows = await insert.many(docs.map((doc, id) => ({ id, doc })));
    assert.deepEqual(
      rows.map(({ doc }) => doc),
      docs,
    );
  });

  test("rows × columns beyond 65,535, the limit of parameters, go in one statement", async () => {
    const names = Array.from({ length: 40 }, (_, i) => `c${i}`);
    await db.rows(`DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (${names.map((name) => `${name} int`).join(", ")})`);
    const insert = insertBatcher(db.client, { table: "keyed", maxBatchSize: 2000, returning: ["c0", "c39"] });
    const rows = Array.from({ length: 2000 }, (_, i) => Object.fromEntries(names.map((name, c) => [name, i + c])));
    const results = await insert.many(rows);
    results.forEach((row, i) => assert.deepEqual(row, { c0: i, c39: i + 39 }));
    assert.equal(insert.stats().batches, 1);
  });

  test("values at their ends are stored or fail alone, each by the database's own word", async () => {
    await db.rows(
      "DROP TABLE IF EXISTS ends; CREATE TABLE ends (t text, n numeric, i int8, at timestamptz, a int[], j jsonb)",
    );
    const insert = insertBatcher(db.client, { table: "ends", returning: [] });
    const cases = [
      [{ t: "a NUL \0" }, "22021"],
      [{ t: "\u202E\u{10FFFF} NULL {,} \\ \"" }],
      [{ t: "\uD800" }], // Stored as U+FFFD, as the drivers themselves write it.
      [{ t: "x".repeat(5_000_000) }],
      [{ n: "1e131071" }],
      [{ n: "1e131072" }, "22003"],
      [{ n: Number.NaN }],
      [{ i: 2n ** 63n - 1n }],
      [{ i: 2n ** 63n }, "22003"],
      [{ i: 1.5 }, "22P02"],
      [{ at: "4713-01-01 BC" }],
      [{ at: "-infinity" }],
      [{ at: new Date(Number.NaN) }, undefined],
      [{ at: new Date(-1e15) }, undefined],
      [{ a: [[1, 2], [3, null]] }],
      [{ a: [[1], [2, 3]] }, "22P02"],
      [{ j: { deep: "\u0000" } }, "22P05"],
      [{ j: JSON.parse('{"__proto__": [1]}') }],
      [{ j: JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) }, undefined],
    ]; // prettier-ignore
    const outcomes = await insert.settle(cases.map(([row]) => row));
    outcomes.forEach(({ status, reason }, i) => {
      const [row, ...code] = cases[i];
      const name = JSON.stringify(Object.keys(row)) + i;
      if (code.length === 0) assert.equal(status, "fulfilled", `${name}: ${reason}`);
      else assert.deepEqual([status, reason.code], ["rejected", code[0]], `${name}: ${reason}`);
    });
    const good = cases.filter((each) => each.length === 1).length;
    assert.equal((await db.rows("SELECT count(*)::int AS n FROM ends"))[0].n, good);
  });

  test("1600 columns, the most that a table can have, are inserted, upserted and looked up", async () => {
    const names = Array.from({ length: 1599 }, (_, i) => `c${i}`);
    await db.rows(`DROP TABLE IF EXISTS wide; CREATE TABLE wide (id int PRIMARY KEY, ${names.join(" int, ")} int)`);
    const rowOf = (id) => ({ id, ...Object.fromEntries(names.map((name, i) => [name, i])) });
    const [first] = await insertBatcher(db.client, { table: "wide" }).many([rowOf(1), rowOf(2)]);
    assert.equal(first.c1598, 1598);
    await upsertBatcher(db.client, { table: "wide", key: ["id"] }).many([rowOf(2), rowOf(3)]);
    const found = await lookupBatcher(db.client, { table: "wide", key: "id" }).many([3, 4]);
    assert.deepEqual([found[0].c1598, found[1]], [1598, undefined]);
  });

  test("an upsert inserts or overwrites; `update: []` finds or creates", async () => {
    await clear();
    const upsert = upsertBatcher(db.client, { table: "people", key: ["email"] });
    const [a] = await upsert.many([
      { email: "a", age: 1, city: "Rome" },
      { email: "b", age: 2, city: "Oslo" },
    ]);
    const [a2, c] = await Promise.all([upsert({ email: "a", age: 9 }), upsert({ email: "c", age: 3 })]);
    assert.deepEqual(a2, { ...a, age: 9 });
    assert.equal(c.city, "Bern");
    const findOrCreate = upsertBatcher(db.client, { table: "people", key: ["email"], update: [], returning: ["age"] });
    assert.deepEqual(await findOrCreate.many([{ email: "b", age: 99 }, { email: "d", age: 4 }]), [{ age: 2 }, { age: 4 }]); // prettier-ignore
  });

  test("rows of one key that wait together are all written, in order, each with its own row", async () => {
    await clear();
    const upsert = upsertBatcher(db.client, { table: "people", key: ["email"], returning: ["email", "age"] });
    const rows = Array.from({ length: 300 }, (_, i) => ({ email: `p${i % 7}`, age: i }));
    assert.deepEqual(await Promise.all(rows.map(upsert)), rows);
    const stored = await db.rows("SELECT email, age FROM people ORDER BY age");
    assert.deepEqual(stored, rows.slice(-7));
  });

  test("keys that only the database holds for equal are split by the database's own word", async () => {
    await db.rows("DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (id uuid PRIMARY KEY, n int)");
    const upsert = upsertBatcher(db.client, { table: "keyed", key: ["id"] });
    const id = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    const rows = await upsert.many([{ id, n: 1 }, { id: id.toUpperCase(), n: 2 }, { id, n: 3 }]); // prettier-ignore
    assert.deepEqual(
      rows.map(({ n }) => n),
      [1, 2, 3],
    );
    assert.deepEqual(await db.rows("SELECT * FROM keyed"), [{ id, n: 3 }]);
  });

  test("a key that its column rounds or pads still finds its row", async () => {
    await db.rows(`DROP TABLE IF EXISTS keyed;
      CREATE TABLE keyed (a numeric(6, 1), b char(4), n int, PRIMARY KEY (a, b))`);
    const upsert = upsertBatcher(db.client, { table: "keyed", key: ["a", "b"], returning: ["n"] });
    assert.deepEqual(await upsert.many([{ a: 1.26, b: "x", n: 1 }, { a: 2, b: "yy", n: 2 }]), [{ n: 1 }, { n: 2 }]); // prettier-ignore
  });

  test("a poison row among rows of one key fails alone, and the rows around it are written once", async () => {
    await clear();
    await db.rows(`CREATE TABLE IF NOT EXISTS audit (email text, age int); TRUNCATE audit;
      CREATE OR REPLACE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO audit VALUES (NEW.email, NEW.age); RETURN NULL; END $$;
      CREATE OR REPLACE TRIGGER audit AFTER INSERT OR UPDATE ON people FOR EACH ROW EXECUTE FUNCTION audit()`);
    const upsert = upsertBatcher(db.client, { table: "people", key: ["email"], returning: ["age"] });
    const rows = ["a", "b", "a", "b", "c", "a"].map((email, i) => ({ email, age: i === 2 ? -1 : i }));
    const outcomes = await upsert.settle(rows);
    assert.deepEqual(
      outcomes.map(({ value, reason }) => value?.age ?? reason.code),
      [0, 1, "23514", 3, 4, 5],
    );
    const written = await db.rows("SELECT * FROM audit ORDER BY age");
    await db.rows("DROP TRIGGER audit ON people");
    assert.deepEqual(
      written.map(({ age }) => age),
      [0, 1, 3, 4, 5],
    );
  });

  test("a row without its key is refused at the call", async () => {
    const upsert = upsertBatcher(db.client, { table: "people", key: ["email"] });
    await assert.rejects(upsert({ age: 1 }), /key column "email" must have a value, got undefined/);
    await assert.rejects(upsert({ email: null }), /key column "email" must have a value, got null/);
  });

  test("a lookup gives the row, undefined for none, and shares equal keys", async () => {
    await clear();
    await insertPeople().many([{ email: "a", age: 1 }, { email: "b", age: 2 }]); // prettier-ignore
    const find = lookupBatcher(db.client, { table: "people", key: "email", columns: ["age"] });
    assert.deepEqual(await Promise.all(["b", "none", "a", "b"].map(find)), [{ age: 2 }, undefined, { age: 1 }, { age: 2 }]); // prettier-ignore
    assert.equal(find.stats().batches, 1);
    assert.equal(find.stats().meanBatchSize, 3);
  });

  test("a key that the column cannot read fails alone", async () => {
    const find = lookupBatcher(db.client, { table: "people", key: "id", columns: ["email"] });
    const outcomes = await find.settle([1, "one", 2, null, 2 ** 40]);
    assert.deepEqual(
      outcomes.map(({ value, reason }) => value?.email ?? reason?.code ?? reason?.name),
      ["a", "22P02", "b", "TypeError", "22003"],
    );
  });

  test('`rows: "all"` gives every row of a key; "one" refuses to choose', async () => {
    await clear();
    await insertPeople().many(["a", "b", "c"].map((email, i) => ({ email, age: i, city: i < 2 ? "Rome" : "Oslo" })));
    const all = lookupBatcher(db.client, { table: "people", key: "city", columns: ["email"], rows: "all" });
    assert.deepEqual(await Promise.all(["Rome", "Paris", "Oslo"].map(all)), [[{ email: "a" }, { email: "b" }], [], [{ email: "c" }]]); // prettier-ignore
    const one = lookupBatcher(db.client, { table: "people", key: "city" });
    await assert.rejects(one("Rome"), /several rows for this key/);
    const pair = lookupBatcher(db.client, { table: "people", key: ["city", "email"], columns: ["age"] });
    assert.deepEqual(await pair.many([{ city: "Rome", email: "b" }, { city: "Oslo", email: "a" }]), [{ age: 1 }, undefined]); // prettier-ignore
  });

  test("rows that a trigger skips are distinguished from those it lets through", async () => {
    await db.rows(`CREATE TABLE guarded (id serial PRIMARY KEY, word text);
      CREATE OR REPLACE FUNCTION skip_some() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.word LIKE 'skip%' THEN RETURN NULL; END IF; NEW.word := upper(NEW.word); RETURN NEW; END $$;
      CREATE TRIGGER skip_some BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION skip_some()`);
    const outcomes = await insertBatcher(db.client, { table: "guarded" }).settle(
      ["a", "skip 1", "b", "c", "skip 2"].map((word) => ({ word })),
    );
    assert.deepEqual(
      outcomes.map(({ value, reason }) => value?.word ?? /a trigger skipped it/.test(reason.message)),
      ["A", true, "B", "C", true],
    );
    assert.equal((await db.rows("SELECT * FROM guarded")).length, 3);
  });

  /** The client's own way to insert one row. */
  async function insertAlone(client, row) {
    const names = Object.keys(row);
    const parameters = names.map((_, i) => `$${i + 1}`);
    const text = `INSERT INTO every_type (${names.join(", ")}) VALUES (${parameters.join(", ")})`;
    // By hand where a driver cannot: JSON in arrays, and arrays of bytes and Dates, which postgres.js takes for their elements.
    const texts = {
      jbs: row.jbs && `{${row.jbs.map((doc) => JSON.stringify(JSON.stringify(doc))).join(",")}}`,
      bins: row.bins && '{"\\\\x61",NULL,"\\\\x"}',
      tzs: row.tzs && `{"${row.tzs[0].toISOString()}"}`,
    };
    const values = names.map((name) => texts[name] ?? row[name]);
    return typeof client === "function" ? client.unsafe(text, values) : client.query(text, values);
  }
}

test("rows that come back in another order, or numbered with BigInt, still reach their own callers", async () => {
  const db = await PGlite.create();
  await db.exec("CREATE TABLE people (id serial PRIMARY KEY, email text UNIQUE)");
  const odd = {
    async query(text, values) {
      const { rows } = await db.query(text, values);
      return { rows: rows.map((row) => ("#" in row ? { ...row, "#": BigInt(row["#"]) } : row)).reverse() };
    },
  };
  const emails = Array.from({ length: 100 }, (_, i) => `p${i}`);
  const given = (rows) => rows.map(({ email }) => email);
  assert.deepEqual(
    given(await insertBatcher(odd, { table: "people" }).many(emails.map((email) => ({ email })))),
    emails,
  );
  const upsert = upsertBatcher(odd, { table: "people", key: ["email"] });
  assert.deepEqual(given(await upsert.many(emails.map((email) => ({ email })))), emails);
  assert.deepEqual(given(await lookupBatcher(odd, { table: "people", key: "email" }).many(emails)), emails);
  await db.close();
});

test("isRowError: data and integrity are the row's; connections, deadlocks and permissions are not", () => {
  const errors = (codes) => codes.map((code) => isRowError(Object.assign(new Error(), { code })));
  assert.deepEqual(new Set(errors(["22P02", "23505", "21000", "54000", "44000", "P0001"])), new Set([true]));
  assert.deepEqual(
    new Set(errors(["40P01", "40001", "08006", "57P01", "42501", "42P01", "55P03", "57014", "ECONNRESET", "EPIPE"])),
    new Set([false]),
  );
});

test("a client that is none of the three is refused with what it is", () => {
  assert.throws(() => insertBatcher({ execute() {} }, { table: "t" }), /client must be a Pool .* got an object/);
  assert.throws(() => insertBatcher(undefined, { table: "t" }), /got undefined/);
  assert.throws(() => insertBatcher({ query() {} }, { table: "" }), /table must be a non-empty name, got ""/);
});
