/**
 * How long the HTTP thread keeps others waiting while its model is saturated: `npm run bench -- event-loop`. Serves each
 * built-in model in a process of its own, loads it from a closed loop of 64 callers, and reads the event loop's p99
 * delay from /metrics: idle, then saturated. About half a minute.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/served-model.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { machine, table } from "./lib/machine.mjs";

const seconds = 8;
const bodies = {
  "use-lite": JSON.stringify("The cat sits outside and a man is playing the guitar"),
  mlp: JSON.stringify(Array.from({ length: 768 }, (_, i) => Math.sin(i))),
};
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));

console.log(machine());
const rows = [
  ["model", "idle p99 ms", "saturated p99 ms", "replies/s", "mean batch", "latency p50 ms", "latency p99 ms"],
];
for (const [model, body] of Object.entries(bodies)) {
  const served = await serveModel({ entry, model });
  await delayMs(served.origin); // Forgets the start.
  await sleep(3000);
  const idleMs = await delayMs(served.origin);
  const before = await batches(served.origin);
  const url = new URL("/infer", served.origin);
  const target = httpTarget({ url, requests: [renderRequest({ url, method: "POST", headers: {}, body })] });
  const options = { configuration: model, target, clock: systemClock, pattern: "closed", callers: 64, seed: 1 };
  const { latencyMs, achievedPerS } = await runLoad({ ...options, durationMs: seconds * 1000, warmUpMs: 1000 });
  const saturatedMs = await delayMs(served.origin);
  const after = await batches(served.origin);
  const mean = (after.items - before.items) / (after.batches - before.batches);
  const figures = [idleMs, saturatedMs, achievedPerS, mean, latencyMs.p50, latencyMs.p99];
  rows.push([model, ...figures.map((figure) => figure.toFixed(1))]);
  target.close();
  await served.stop();
}
console.log(table(rows));

async function metric(origin, name) {
  const text = await (await fetch(`${origin}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? 0);
}

/** Since the last scrape. */
async function delayMs(origin) {
  return 1000 * (await metric(origin, "sheaf_event_loop_delay_p99_seconds"));
}

async function batches(origin) {
  return {
    items: await metric(origin, "sheaf_batch_size_items_sum"),
    batches: await metric(origin, "sheaf_batch_size_items_count"),
  };
}
