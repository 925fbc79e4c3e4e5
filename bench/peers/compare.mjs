import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadMlp, runMlp } from "../../packages/sheaf-server/dist/runners/mlp-worker.js";
import { machine } from "../lib/machine.mjs";
import { burst, burstRates, closed, keptUp, lone, measure, open, overloadOf, writeRequests } from "./drives.mjs";
import { length } from "./formats.mjs";
import { install } from "./install.mjs";
import { reportOf } from "./report.mjs";
import { startServer } from "./server-process.mjs";
import { servers } from "./servers.mjs";
import { versionsOf } from "./versions.mjs";

const drives = ["closed", "open", "openBinary", "burst", "overload", "lone"];
const defaultRates = [100, 300, 600, 1000, 1500, 2000, 2500, 3000, 3500];
const distinctItems = 16;
/** Of each format, before anything is measured: a compiler that works while the server serves needs thousands of requests. */
const warmUpSeconds = 3;

/** Reads the command line of a comparison, runs it, and prints and writes its report. */
export async function compare({ command, title, defaultServers }) {
  const { values: flags } = parseArgs({
    options: {
      servers: { type: "string", default: defaultServers.join() },
      rounds: { type: "string", default: "2" },
      seconds: { type: "string", default: "5" },
      drives: { type: "string", default: drives.join() },
      rates: { type: "string", default: defaultRates.join() },
      out: { type: "string" },
      from: { type: "string" },
      "install-only": { type: "boolean", default: false },
    },
  });
  if (flags.from !== undefined)
    return publish(JSON.parse(readFileSync(`${flags.from}/figures.json`, "utf8")), flags.from);
  const names = listed("servers", flags.servers, Object.keys(servers));
  const plan = {
    rounds: number("rounds", flags.rounds, 1, 100),
    seconds: number("seconds", flags.seconds, 1, 300),
    drives: listed("drives", flags.drives, drives),
    rates: flags.rates.split(",").map((rate) => number("rates", rate, 1, 20_000)),
  };
  install(names.map((name) => servers[name]));
  if (flags["install-only"]) return;
  if (flags.out !== undefined) mkdirSync(flags.out, { recursive: true });

  const items = Array.from({ length: distinctItems }, (_, k) => itemOf(k));
  const session = await loadMlp({ intraOpNumThreads: 1 });
  const [expected] = await runMlp([items[0]], session);
  await session.release();
  const figures = {
    title,
    command: `npm run bench -- ${[command, ...process.argv.slice(2)].join(" ")}`,
    machine: machine(),
    startedAt: new Date().toISOString(),
    versions: versionsOf(names),
    plan,
    runs: [],
  };
  for (let round = 0; round < plan.rounds; round++) {
    // Turned by one each round, so that none always runs after the same neighbour.
    for (const name of names.map((_, i) => names[(i + round) % names.length])) {
      console.error(`Round ${round + 1} of ${plan.rounds}: ${name}`);
      if (figures.runs.some(({ server, failure }) => server === name && failure !== undefined)) continue;
      try {
        figures.runs.push({ round, server: name, ...(await driveServer(name, plan, round, items, expected)) });
      } catch (error) {
        console.error(error.message);
        figures.runs.push({ round, server: name, failure: error.message });
        process.exitCode = 1;
      }
    }
  }
  publish(figures, flags.out);
}

function publish(figures, folder) {
  const text = reportOf(figures);
  console.log(text);
  if (folder === undefined) return;
  writeFileSync(`${folder}/figures.json`, `${JSON.stringify(figures)}\n`);
  writeFileSync(`${folder}/README.md`, text);
}

/** All drives of one server in one round, in a process of its own. */
async function driveServer(name, { seconds, drives, rates }, round, items, expected) {
  const server = await startServer(name, servers[name], items[0], expected);
  try {
    const requests = {};
    for (const [format, how] of Object.entries(servers[name].formats))
      requests[format] = writeRequests(format, how, items, server.port);
    const run = (format, load, span = seconds) =>
      measure(server, requests[format], load, { seconds: span, seed: round + 1 });
    for (const format of Object.keys(requests)) await run(format, closed, warmUpSeconds);
    const result = {};
    if (drives.includes("closed")) {
      result.closed = {};
      for (const format of Object.keys(requests))
        result.closed[format] = told(`closed, ${format}`, await run(format, closed));
      result.pssMib = server.pssMib();
    }
    if (drives.includes("lone")) result.lone = told("lone", await run("json", lone));
    if (drives.includes("open")) result.open = await rising("open", rates, (rate) => run("json", open(rate)));
    if (drives.includes("openBinary") && requests.binary !== undefined)
      result.openBinary = await rising("open binary", rates, (rate) => run("binary", open(rate)));
    if (drives.includes("burst")) result.burst = await rising("burst", burstRates, (rate) => run("json", burst(rate)));
    if (drives.includes("overload")) {
      const most = result.closed?.json ?? (await run("json", closed));
      result.overload = told("overload", await run("json", overloadOf(most)));
      result.overload.goodput = result.overload.achievedPerS / most.achievedPerS;
    }
    return result;
  } finally {
    await server.stop();
  }
}

/** Rates in rising order up to the first that the server does not keep up with. */
async function rising(label, rates, run) {
  const results = {};
  for (const rate of rates.toSorted((a, b) => a - b)) {
    results[rate] = told(`${label} ${rate}/s`, await run(rate));
    if (!keptUp(results[rate])) break;
  }
  return results;
}

function told(label, result) {
  const { achievedPerS, latencyMs, latenessMs, runMs, cpuSecondsPer1000, othersCores, sent, ok } = result;
  const run = runMs === undefined ? "" : ` (its run ${runMs.p50.toFixed(2)})`;
  const failed = ok < sent ? `, ${sent - ok} of ${sent} failed` : "";
  console.error(
    `  ${label.padEnd(16)} ${achievedPerS.toFixed(0).padStart(5)}/s, p50 ${latencyMs.p50.toFixed(2)}${run}, p99 ${latencyMs.p99.toFixed(1)} ms, ` +
      `CPU ${cpuSecondsPer1000.toFixed(2)} s per 1,000 (sent late by ${latenessMs.p99.toFixed(1)} ms at p99; others used ${othersCores.toFixed(1)} cores)${failed}`,
  );
  return result;
}

/** Numbers of a size that a model takes, other ones for each item. */
const itemOf = (k) => Float32Array.from({ length }, (_, i) => Math.cos(1 + i + 7 * k));

function listed(name, text, known) {
  const chosen = text.split(",");
  const unknown = chosen.find((one) => !known.includes(one));
  if (unknown === undefined) return chosen;
  console.error(`--${name} must be of ${known.join(", ")}, got ${JSON.stringify(unknown)}`);
  process.exit(2);
}

function number(name, text, least, most) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  console.error(`--${name} must be an integer from ${least} to ${most}, got ${JSON.stringify(text)}`);
  process.exit(2);
}
