// Documents come in one by one; their vectors are written in batches. Who must read what was just written has three ways.
// Runs in memory: PGlite with pgvector. `lanceDbStore(table)` and `qdrantStore(client, { collection })` take its place.
import assert from "node:assert/strict";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";
import { fixedWindow } from "sheaf";
import { optimistic, pgvectorStore } from "sheaf/adapters/vector-store";

const db = await PGlite.create({ extensions: { vector } });
await db.exec("CREATE EXTENSION vector; CREATE TABLE docs (id int PRIMARY KEY, embedding vector(64), title text)");

// A window this long holds a lone write for 2 s: what the three ways below do about it is plain to see.
const docs = pgvectorStore(db, { table: "docs", upserts: { policy: fixedWindow(), maxWaitMs: 2000 } });
const pointOf = (id) => ({ id, vector: embed(id), payload: { title: `document ${id}` } });
const nearestTo = async (store, id) => (await store.query({ vector: embed(id), limit: 1 }))[0]?.id;

// 1,000 documents at once: 200 in each write, the last of them when the window ends.
await Promise.all(Array.from({ length: 1000 }, (_, id) => docs.upsert(pointOf(id))));
const { batches } = docs.upsert.stats();
assert.equal(batches, 5);
console.log(`1000 upserts in ${batches} statements`);

// 1. priority: "immediate" goes at once, and takes along what waits.
await docs.upsert(pointOf(2001), { priority: "immediate" });
assert.equal(await nearestTo(docs, 2001), 2001);
console.log("found after an immediate write");

// 2. Wait for the flush: what others wrote before is there too.
const written = docs.upsert(pointOf(2002));
await docs.upsert.flush();
assert.equal(await nearestTo(docs, 2002), 2002);
await written;
console.log("found after the flush");

// 3. Optimistic local state: found before it is written, taken back should the write fail.
const mine = optimistic(docs);
const underWay = mine.upsert(pointOf(2003));
assert.equal(await nearestTo(mine, 2003), 2003);
assert.notEqual(await nearestTo(docs, 2003), 2003);
console.log("found while it waits");
await docs.close();
await underWay;
await db.close();

/** Stands for your embedding model: a vector of length 1 that depends on the id alone. */
function embed(id) {
  const values = Array.from({ length: 64 }, (_, i) => Math.sin(id * 12.9898 + i * 78.233 * (1 + (id % 7))));
  const norm = Math.hypot(...values);
  return values.map((value) => value / norm);
}
