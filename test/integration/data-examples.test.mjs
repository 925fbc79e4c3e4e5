// examples/postgres-writes and examples/vector-upserts need databases that only this folder installs: run as their readers
// run them, from a copy in here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

async function run(t, example, env = {}) {
  const folder = await mkdtemp(pathOf("node_modules/.example-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(pathOf(`../../examples/${example}`), folder, { recursive: true });
  const options = { cwd: folder, timeout: 600_000, env: { ...process.env, DATABASE_URL: "", ...env } };
  return (await promisify(execFile)(process.execPath, ["main.mjs"], options)).stdout.trim().split("\n");
}

function assertWrites([written, found, report, ...rest]) {
  assert.match(written, /^998 orders written, 2 refused, \d\d statements$/);
  assert.equal(found, "Ada was here 3 times, Bob never");
  assert.match(report, /^this hour: 1000 items in \d+ batches of the service orders$/);
  assert.deepEqual(rest, []);
}

test("examples/postgres-writes, on PGlite: 1,000 requests become a few statements, two fail alone", async (t) => {
  assertWrites(await run(t, "postgres-writes"));
});

test("examples/postgres-writes, on a PostgreSQL by its URL", { skip: skipWithoutPostgres }, async (t) => {
  const server = await startPostgres();
  t.after(() => server.close());
  assertWrites(await run(t, "postgres-writes", { DATABASE_URL: server.url }));
});

test("examples/vector-upserts: 1,000 upserts in 5 statements, and each way to read one's own write", async (t) => {
  assert.deepEqual(await run(t, "vector-upserts"), [
    "1000 upserts in 5 statements",
    "found after an immediate write",
    "found after the flush",
    "found while it waits",
  ]);
});
