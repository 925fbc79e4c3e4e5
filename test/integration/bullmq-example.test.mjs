// examples/bullmq needs BullMQ and a Redis: run as its reader runs it, from a copy in here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { skipWithoutRedis, startRedis } from "./lib/redis.mjs";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

test(
  "examples/bullmq: 300 jobs take a few calls, and each has its own result",
  { skip: skipWithoutRedis },
  async (t) => {
    const redis = await startRedis();
    t.after(() => redis.close());
    const folder = await mkdtemp(pathOf("node_modules/.example-"));
    t.after(() => rm(folder, { recursive: true }));
    await cp(pathOf("../../examples/bullmq"), folder, { recursive: true });
    const env = { ...process.env, REDIS_PORT: String(redis.port) };
    const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], {
      cwd: folder,
      env,
      timeout: 600_000,
    });
    assert.match(stdout, /^one by one: 300 jobs, 301 calls, \d+ ms\nin batches: 300 jobs, \d\d? calls, \d+ ms\n$/);
  },
);
