/**
 * How long the main thread of the server stalls at a steady rate, beside a process with nothing but a timer on the same
 * cores, and its CPU time while nothing watches: `npm run bench -- stalls [--rounds 3] [--seconds 4] [--load WORD]
 * [--against FOLDER]`. Only loads with the word in their name; another checkout, built, takes turns with this one. Linux;
 * the generator is built with cargo. About two minutes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { machine, median, table } from "./lib/machine.mjs";
import { cpuByThread } from "./lib/thread-cpu.mjs";
import { measure, open, writeRequests } from "./peers/drives.mjs";
import { jsonArray } from "./peers/formats.mjs";
import { install } from "./peers/install.mjs";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "4" },
    load: { type: "string", default: "" },
    against: { type: "string" },
  },
});
const rounds = Number(flags.rounds);
const seconds = Number(flags.seconds);
const watch = fileURLToPath(new URL("./stalls/watch.cjs", import.meta.url));
const here = fileURLToPath(new URL("..", import.meta.url));

const numbers = Array.from({ length: 16 }, (_, k) =>
  Float32Array.from({ length: 768 }, (_, i) => Math.cos(1 + i + 7 * k)),
);
const words = "the people way time world life work number night day water room mother area money story fact".split(" ");
const text = (count, k) => Array.from({ length: count }, (_, i) => words[(i * 7 + k) % words.length]).join(" ");
const textFormat = {
  path: "/infer",
  request: (value) => ({
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify({ input: value })),
  }),
};
const loads = [
  { name: "mlp, 768 floats", model: "mlp", format: jsonArray("/infer"), items: numbers, ratePerS: 1000 },
  ...[5, 60].map((count) => ({
    name: `use-lite, ${count} words`,
    model: "use-lite",
    format: textFormat,
    items: Array.from({ length: 16 }, (_, k) => text(count, k)),
    ratePerS: count === 5 ? 400 : 100,
  })),
].filter(({ name }) => name.includes(flags.load));

install([]);
const trees = { here, ...(flags.against !== undefined && { before: resolve(flags.against) }) };
console.log(`${machine()}\nnpm run bench -- ${["stalls", ...process.argv.slice(2)].join(" ")}`);
const figures = new Map();
for (let round = 0; round < rounds; round++)
  for (const load of loads)
    for (const [tree, folder] of Object.entries(trees)) {
      const key = `${load.name} at ${load.ratePerS}/s${tree === "here" ? "" : ", before"}`;
      figures.set(key, [...(figures.get(key) ?? []), await run(folder, load, round)]);
    }
const rows = [
  ["load", "over 5 ms / s", "beside", "over 10 ms / s", "beside", "worst ms", "beside", "CPU ms / request"],
];
for (const [name, runs] of figures) {
  const of = (pick) => median(runs.map(pick));
  const both = (pick, digits) =>
    [of((one) => pick(one.server)), of((one) => pick(one.bare))].map((n) => n.toFixed(digits));
  rows.push([
    name,
    ...both((lateMs) => over(5, lateMs) / seconds, 1),
    ...both((lateMs) => over(10, lateMs) / seconds, 1),
    ...both((lateMs) => Math.max(0, ...lateMs), 1),
    of(({ cpuMs, answered }) => cpuMs / answered).toFixed(3),
  ]);
}
console.log(table(rows));

function over(limitMs, lateMs) {
  return lateMs.filter((ms) => ms > limitMs).length;
}

async function run(folder, { model, format, items, ratePerS }, round) {
  // As users start it: its first line holds flags of Node.
  const command = `${folder}/packages/sheaf-server/bin/sheaf.js`;
  const args = ["serve", model, "--port", "0", "--max-batch-size", "64", "--worker-threads", "1"];
  const server = spawn(command, args, {
    env: { ...process.env, NODE_OPTIONS: `--require ${watch}` },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const bare = spawn(process.execPath, [watch], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  try {
    const port = await portOf(server);
    const requests = writeRequests("stalls", format, items, port);
    const target = { port, cpuSeconds: () => 0 };
    await measure(target, requests, open(ratePerS), { seconds: 3, seed: 1 });
    const load = { seconds, seed: round + 1 };
    const cpuBeforeMs = httpThreadMs(server);
    const { answeredInAll } = await measure(target, requests, open(ratePerS), load);
    const cpuMs = httpThreadMs(server) - cpuBeforeMs;
    for (const one of [server, bare]) one.send("begin");
    await measure(target, requests, open(ratePerS), load);
    const watched = [server, bare].map(async (one) => {
      one.send("end");
      const [message] = await once(one, "message");
      return message;
    });
    const [ofServer, ofBare] = await Promise.all(watched);
    return { server: ofServer, bare: ofBare, cpuMs, answered: answeredInAll };
  } finally {
    for (const one of [server, bare]) {
      one.kill("SIGKILL");
      await once(one, "exit");
    }
  }
}

function httpThreadMs({ pid }) {
  return cpuByThread(pid).get("HTTP thread");
}

/** The port in the line that a server logs when it listens, once it is ready. */
async function portOf(server) {
  let log = "";
  let port;
  server.stdout.setEncoding("utf8");
  for await (const piece of server.stdout.iterator({ destroyOnReturn: false })) {
    log += piece;
    port ??= /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(log)?.[1];
    if (port !== undefined && log.includes('"msg":"ready"')) break;
  }
  if (port === undefined) throw new Error(`the server ended: ${log}`);
  server.stdout.resume();
  return Number(port);
}
