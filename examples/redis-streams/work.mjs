// Stands for an API, a model or a database: a call costs 20 ms, however many jobs it carries.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export async function work(jobs) {
  await sleep(jobs.some(({ isSlow }) => isSlow) ? 500 : 20);
  // What has been done stays done when the process is killed: main.mjs compares it with what was acknowledged.
  const lines = jobs.map(({ key, n, isBad }) => `${isBad ? "bad" : "done"} ${key} ${n} ${jobs.length}\n`);
  appendFileSync(process.env.DONE_FILE, lines.join(""));
  return jobs.map(({ n, isBad }) => (isBad ? new Error(`job ${n} is bad`) : n));
}
