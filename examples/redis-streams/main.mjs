// 2000 messages, some of them bad, and a consumer that is killed in the middle. Needs a Redis ≥ 6.2: REDIS_URL.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const count = 2000;
const folder = mkdtempSync(join(tmpdir(), "redis-streams-example-"));
process.env.DONE_FILE = join(folder, "done.txt");
writeFileSync(process.env.DONE_FILE, "");
process.env.REDIS_URL ??= "redis://127.0.0.1:6379";
process.env.CONSUMER = "worker-0";

const redis = new Redis(process.env.REDIS_URL);
await redis.del("jobs", "dead");
await redis.xgroup("CREATE", "jobs", "workers", "0", "MKSTREAM");
const jobs = Array.from({ length: count }, (_, n) => ({ n, key: n % 10, isBad: n % 100 === 7, isSlow: n % 100 === 8 }));
await Promise.all(jobs.map((job) => redis.xadd("jobs", "*", "job", JSON.stringify(job))));

let consumer = fork("consumer.mjs");
while ((await redis.xlen("jobs")) > count / 2) await sleep(20);
consumer.kill("SIGKILL");
consumer = fork("consumer.mjs");
for (let tries = 0; (await redis.xlen("jobs")) > 0; tries++) {
  assert.ok(tries < 600, `${await redis.xlen("jobs")} messages are left`);
  await sleep(50);
}
consumer.kill("SIGTERM");
assert.deepEqual(await once(consumer, "exit"), [0, null]);

const lines = readFileSync(process.env.DONE_FILE, "utf8").trim().split("\n");
const done = new Set(lines.filter((line) => line.startsWith("done")).map((line) => Number(line.split(" ")[2])));
assert.equal(done.size, count - count / 100, "each good message was done");
assert.equal(await redis.xlen("dead"), count / 100, "each bad one was put aside after three deliveries");
const batches = lines.reduce((sum, line) => sum + 1 / Number(line.split(" ")[3]), 0);
console.log(
  `${done.size} messages done, ${count / 100} put aside, ${lines.length} runs in ${Math.round(batches)} batches`,
);
await redis.quit();
rmSync(folder, { recursive: true });
