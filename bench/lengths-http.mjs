/**
 * `npm run bench -- lengths-http --base FOLDER [--rounds 5] [--seconds 15] [--load 0.8]`: texts of different lengths over
 * HTTP. FOLDER is a built checkout of another version; its server and this one, each with one worker and default settings,
 * serve the same encoder with random weights. Texts have 5 to 400 words, short ones as often as long ones of each order of
 * magnitude. A round loads each server in turn: 64 callers in a closed loop, then Poisson arrivals at a share of what the
 * other version answered in the closed loop of the first round. Prints the throughput, the server's CPU time a text there,
 * the p99 of the shorter and the longer half, and this version's ÷ the other's within a round, medians. CPU time is the
 * steadier measure of throughput where other work runs beside it. Ends after rounds × 4 × seconds and a minute.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { root } from "../scripts/lib/files.mjs";
import { writeEncoderFolder } from "../test/support/encoder-folder.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { cpuMsOf } from "./lib/process-cpu.mjs";

const { values } = parseArgs({
  options: {
    base: { type: "string", default: "" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "15" },
    load: { type: "string", default: "0.8" },
  },
});
const [rounds, seconds, load] = [values.rounds, values.seconds, values.load].map(Number);
const entryOf = (checkout) => join(resolve(checkout), "packages/sheaf-server/dist/cli/main.js");
if (values.base === "" || !existsSync(entryOf(values.base)))
  fail(`--base must be a built checkout, got ${JSON.stringify(values.base)}: there is no ${entryOf(values.base)}`);
if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) fail("--rounds must be an integer, 1 to 20");
if (!(seconds >= 1 && seconds <= 60)) fail("--seconds must be a number, 1 to 60");
if (!(load > 0 && load < 1)) fail("--load must be a share of capacity, 0 < load < 1");

const callers = 64;
const shortest = 5;
const longest = 400;
/** Small enough for some hundred texts a second on one core. */
const shape = { layers: 3, width: 256, heads: 4, hidden: 1024, vocabulary: 5_000, maxTokens: 512 };
// Those of one round are the same for both servers.
const texts = 512;

console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}`);
console.log(`npm run bench -- lengths-http --rounds ${rounds} --seconds ${seconds} --load ${load}\n`);
const folder = mkdtempSync(join(tmpdir(), "sheaf-lengths-"));
const servers = [];
try {
  writeEncoderFolder(join(folder, "encoder"), shape);
  for (const checkout of [values.base, root])
    servers.push(await serveModel({ entry: entryOf(checkout), model: join(folder, "encoder") }));
  console.log(table(await measure()));
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true });
}

async function measure() {
  const [base, own] = servers;
  const names = new Map([
    [base, "base"],
    [own, "this version"],
  ]);
  const rows = [
    [
      "round",
      "version",
      "closed, texts/s",
      "CPU ms/text",
      "open, texts/s",
      "shorter p99 ms",
      "longer p99 ms",
      "mean ms",
    ],
  ];
  const ratios = { closed: [], cpuMs: [], open: [], shorterMs: [], longerMs: [], meanMs: [] };
  let ratePerS;
  for (let round = 0; round < rounds; round++) {
    const figures = new Map();
    for (const server of round % 2 === 0 ? [base, own] : [own, base]) {
      const closed = await loaded(server, round, { pattern: "closed", callers });
      ratePerS ??= load * closed.perS;
      const { perS, shorterMs, longerMs, meanMs } = await loaded(server, round, { pattern: "steady", ratePerS });
      const row = { closed: closed.perS, cpuMs: closed.cpuMs, open: perS, shorterMs, longerMs, meanMs };
      figures.set(server, row);
      rows.push([String(round + 1), names.get(server), ...Object.values(row).map((number) => number.toFixed(1))]);
    }
    for (const key of Object.keys(ratios)) ratios[key].push(figures.get(own)[key] / figures.get(base)[key]);
  }
  rows.push(["", "this ÷ base, median", ...Object.values(ratios).map((each) => median(each).toFixed(2))]);
  return rows;
}

/** Latencies by length from each request's send to its reply; the second before is not counted. */
async function loaded(server, round, pattern) {
  const url = new URL("/v1/embeddings", server.origin);
  const random = seededRandom(round + 1);
  const words = Array.from({ length: texts }, () => Math.round(shortest * (longest / shortest) ** random()));
  const requests = words.map((count) => {
    const input = Array.from({ length: count }, () => `w${Math.floor(random() * 4000)}`).join(" ");
    const body = JSON.stringify({ model: "encoder", input, encoding_format: "base64" });
    return renderRequest({ url, method: "POST", headers: { "content-type": "application/json" }, body });
  });
  const inner = httpTarget({ url, requests });
  const sent = [];
  const target = {
    send: (index, done) => {
      const call = { words: words[index % texts], beganMs: performance.now(), ms: Number.NaN };
      sent.push(call);
      return inner.send(index, (end) => {
        if (end.status === 200) call.ms = performance.now() - call.beganMs;
        done(end);
      });
    },
    get waited() {
      return inner.waited;
    },
    close: () => inner.close(),
  };
  const startMs = performance.now();
  const cpuFromMs = cpuMsOf(server.pid);
  const options = { configuration: "lengths", target, clock: systemClock, warmUpMs: 1000, durationMs: 1000 * seconds };
  const result = await runLoad({ ...options, ...pattern, timeoutMs: 30_000, seed: round + 1 });
  const cpuMs = (cpuMsOf(server.pid) - cpuFromMs) / sent.length;
  target.close();
  if (result.successRate < 0.99)
    throw new Error(`${result.requests - result.ok} of ${result.requests} failed: ${result.lastErrorBody}`);
  if (result.saturated !== undefined) console.error(result.saturated);
  const counted = sent.filter(({ beganMs, ms }) => beganMs >= startMs + 1000 && !Number.isNaN(ms));
  const middle = median(words);
  const p99 = (of) => {
    const sorted = counted
      .filter(of)
      .map(({ ms }) => ms)
      .sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(0.99 * sorted.length))];
  };
  return {
    perS: result.achievedPerS,
    cpuMs,
    shorterMs: p99((call) => call.words <= middle),
    longerMs: p99((call) => call.words > middle),
    meanMs: counted.reduce((sum, { ms }) => sum + ms, 0) / counted.length,
  };
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
