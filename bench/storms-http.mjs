/**
 * `npm run bench -- storms-http [--load 0.8] [--order newest,arrival] [--obey]`: a
 * storm of retries over HTTP, on the real clock. `sheaf serve` with default settings serves a model that sleeps 40 + 1.2 n ms;
 * clients close their socket after a second and try twice more, with the back-off of openai's clients (--obey: or as
 * Retry-After asks). Prints answers in time ÷ requests begun, second by second, and when 0.95 of before was back.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { machine } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    load: { type: "string", default: "0.8" },
    order: { type: "string", default: "newest,arrival" },
    obey: { type: "boolean", default: false },
  },
});
const load = Number(values.load);
if (!(load > 0 && load < 1)) {
  console.error("--load must be a share of capacity, 0 < load < 1");
  process.exit(2);
}
const capacityPerS = 32_000 / (40 + 1.2 * 32);
const calmS = 4;
const surgeS = 10;
const endS = 31;
const patienceMs = 1000;

console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}\nnpm run bench -- storms-http --load ${load}\n`);
for (const order of values.order.split(",")) await storm(order);

async function storm(order) {
  const environment = { ...process.env, PORT: "0", LOG_LEVEL: "info", OVERLOAD_ORDER: order, WARMUP_BATCHES: "10" };
  const command = [
    `${root}/packages/sheaf-server/dist/cli/main.js`,
    "serve",
    `${root}/bench/storms-sleeping-worker.mjs`,
  ];
  const server = spawn(process.execPath, command, { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  const port = await portOf(server);
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const seconds = Array.from({ length: endS + 10 }, () => ({ begun: 0, answered: 0 }));
  const counts = { answered: 0, refused: 0, left: 0, failed: 0, attempts: 0, operations: 0 };
  const refusedMs = [];
  const startedAt = performance.now();
  const second = () => seconds[Math.min(seconds.length - 1, Math.floor((performance.now() - startedAt) / 1000))];

  const attempt = () =>
    new Promise((resolve) => {
      counts.attempts++;
      const beganAt = performance.now();
      const body = JSON.stringify("a text");
      const call = request(
        {
          port,
          host: "127.0.0.1",
          path: "/infer",
          method: "POST",
          agent,
          headers: { "content-type": "application/json", "content-length": body.length },
        },
        (response) => {
          response.resume();
          response.on("end", () => {
            clearTimeout(leave);
            if (response.statusCode === 429) refusedMs.push(performance.now() - beganAt);
            const kind = { 200: "answered", 429: "refused" }[response.statusCode] ?? "failed";
            counts[kind]++;
            resolve({ kind, retryMs: Number(response.headers["retry-after-ms"]) });
          });
        },
      );
      const leave = setTimeout(() => {
        counts.left++;
        resolve({ kind: "left" });
        call.destroy();
      }, patienceMs);
      call.on("error", () => {
        clearTimeout(leave);
        resolve({ kind: "failed" });
      });
      call.end(body);
    });
  const operate = async () => {
    counts.operations++;
    second().begun++;
    for (let n = 0; n < 3; n++) {
      const { kind, retryMs } = await attempt();
      if (kind === "answered") return void second().answered++;
      const backOffMs = 500 * 2 ** n * (1 - 0.25 * Math.random());
      await sleep(values.obey && kind === "refused" && retryMs > 0 ? retryMs : backOffMs);
    }
  };

  // Open loop: due operations begin at every tick, Poisson.
  const open = [];
  let dueAt = 0;
  while (performance.now() - startedAt < endS * 1000) {
    const nowS = (performance.now() - startedAt) / 1000;
    while (dueAt < nowS) {
      open.push(operate());
      const rate = load * capacityPerS * (dueAt >= calmS && dueAt < calmS + surgeS ? 3 : 1);
      dueAt += -Math.log(1 - Math.random()) / rate;
    }
    await sleep(2);
  }
  await Promise.all(open);
  agent.destroy();
  server.kill("SIGKILL");
  await once(server, "exit");

  const shares = seconds.slice(0, endS).map(({ begun, answered }) => answered / begun);
  const before = shares.slice(1, calmS).reduce((sum, share) => sum + share, 0) / (calmS - 1);
  let back = calmS + surgeS;
  while (back + 3 <= endS && shares.slice(back, back + 3).some((share) => share < 0.95 * before)) back++;
  const during = seconds.slice(calmS + 1, calmS + surgeS - 1);
  const duringPerS = during.reduce((sum, { answered }) => sum + answered, 0) / during.length;
  refusedMs.sort((a, b) => a - b);
  console.log(`${order}: ${back + 3 > endS ? "never back" : `back after ${back - calmS - surgeS} s`}`);
  console.log(`  answers ÷ begun: ${shares.map((share) => share.toFixed(2)).join(" ")}`);
  console.log(`  goodput ÷ capacity during: ${(duringPerS / capacityPerS).toFixed(2)}`);
  console.log(
    `  attempts an operation: ${(counts.attempts / counts.operations).toFixed(2)}, ${JSON.stringify(counts)}`,
  );
  console.log(`  refusals' p99: ${(refusedMs[Math.floor(refusedMs.length * 0.99)] ?? 0).toFixed(0)} ms\n`);
}

function sleep(ms) {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

function portOf(server) {
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (text) => {
      output += text;
      const port = /127\.0\.0\.1:(\d+)/.exec(output)?.[1];
      if (port !== undefined) setTimeout(() => resolve(Number(port)), 3000);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", () => reject(new Error(`the server ended: ${output}`)));
  });
}
