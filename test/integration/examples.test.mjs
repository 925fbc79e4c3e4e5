// The examples that need what only this folder installs: run as their readers run them, from a copy in here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";
import { pythonWithClients, skipWithoutPython } from "./lib/python.mjs";
import { skipWithoutRedis, startRedis } from "./lib/redis.mjs";
import { skipWithoutTorch, withTorch } from "./lib/torch.mjs";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const inPath = `${pathOf("../../node_modules/.bin")}:${process.env.PATH}`;
const orders = new RegExp(
  "^998 orders written, 2 refused, \\d\\d statements\nAda was here 3 times, Bob never\n" +
    "this hour: 1000 items in \\d+ batches of the service orders\n$",
);

/** What each one prints, the program that is run, and what it needs. `start` gives more variables, and ends what it started. */
const runs = {
  "examples/ai-sdk": { prints: /^200 embed\(\) calls, \d requests/ },
  "examples/bullmq": {
    prints: /^one by one: 300 jobs, 301 calls, \d+ ms\nin batches: 300 jobs, \d\d? calls, \d+ ms\n$/,
    skip: skipWithoutRedis,
    start: async (t) => {
      const redis = await startRedis();
      t.after(() => redis.close());
      return { REDIS_PORT: String(redis.port) };
    },
  },
  "examples/langchain-ollama": {
    words: ["npm", "start", "--silent"],
    prints: /^64 questions in \d+ runs, 64 with the right passage; same vectors as \/v1\/embeddings$/m,
  },
  "examples/postgres-writes": { prints: orders },
  "examples/postgres-writes, on a PostgreSQL by its URL": {
    prints: orders,
    skip: skipWithoutPostgres,
    start: async (t) => {
      const server = await startPostgres();
      t.after(() => server.close());
      return { DATABASE_URL: server.url };
    },
  },
  "examples/python-scikit-learn": {
    words: [process.execPath, "try.mjs"],
    prints: /^\{ digit: 1, share: 0\.\d+ \}\n$/,
    skip: skipWithoutPython,
    start: () => ({ PATH: inPath, PYTHON: pythonWithClients() }),
  },
  "examples/pytorch": {
    words: [process.execPath, "try.mjs"],
    prints: /^(?:[^]*?0\.\d+){10}(?![^]*0\.\d)/,
    skip: skipWithoutTorch,
    start: () => ({ PATH: inPath, PYTHON: withTorch }),
  },
  "examples/vector-upserts": {
    prints:
      /^1000 upserts in 5 statements\nfound after an immediate write\nfound after the flush\nfound while it waits\n$/,
  },
};

for (const [name, { words = [process.execPath, "main.mjs"], prints, skip = false, start }] of Object.entries(runs))
  test(`${name} does what it claims`, { skip }, async (t) => {
    const folder = await mkdtemp(pathOf("node_modules/.example-"));
    t.after(() => rm(folder, { recursive: true }));
    await cp(pathOf(`../../${name.split(",")[0]}`), folder, { recursive: true });
    const env = { ...process.env, DATABASE_URL: "", ...(await start?.(t)) };
    const [command, ...parameters] = words;
    const { stdout } = await promisify(execFile)(command, parameters, { cwd: folder, env, timeout: 600_000 });
    assert.match(stdout, prints);
  });
