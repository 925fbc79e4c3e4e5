import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { renderedRequest } from "./formats.mjs";
import { artifacts, binary } from "./paths.mjs";
import { cpuSeconds, machineBusySeconds } from "./processes.mjs";

const timeoutSeconds = 5;
const warmUpSeconds = 0.5;
const callers = 64;
const mostConnections = 1024;
const overloadConnections = 4096;
/** Of what the closed loop was answered. */
const overloadTimes = 4;
const mostPerS = 20_000;
const lonePerS = 20;
const generatorNiceness = -10;

/** A server that fell this far behind a rate is not asked for more. */
const leastAchieved = 0.9;
const leastOk = 0.99;

export const burstRates = [300, 600, 1000];

/** What a run is called in the figures, and what it asks of the generator. */
export const closed = { pattern: "closed", connections: callers };
export const lone = { pattern: "even", connections: 1, ratePerS: lonePerS };
export const open = (ratePerS) => ({ pattern: "poisson", connections: mostConnections, ratePerS });
/** More connections than a server lets in, or those would be what holds the load back. */
const overload = (ratePerS) => ({ pattern: "poisson", connections: overloadConnections, ratePerS });
export const burst = (ratePerS) => ({ pattern: "burst", connections: mostConnections, ratePerS });

/** Four times what a server answered in its closed loop, as far as the generator goes. */
export const overloadOf = ({ achievedPerS }) => overload(Math.min(mostPerS, Math.round(overloadTimes * achievedPerS)));

export const keptUp = ({ sent, ok, offeredPerS, achievedPerS }) =>
  ok >= leastOk * sent && achievedPerS >= leastAchieved * offeredPerS;

/**
 * Writes the requests of a format, by its name: some servers take two formats on one path. They are sent in turn, so that
 * no cache sees one item only.
 */
export function writeRequests(name, format, items, port) {
  return items.map((item, i) => {
    const path = `${artifacts}/requests/${i}-${name}.http`;
    writeFileSync(path, renderedRequest(format, item, port));
    return path;
  });
}

/** One load of one server: the generator's report, and what it cost. */
export async function measure(server, requests, load, { seconds, seed }) {
  const plan = { warmUpSeconds, timeoutSeconds, seed, seconds, ...load, requests, address: `127.0.0.1:${server.port}` };
  const before = { server: server.cpuSeconds(), machine: machineBusySeconds(), own: ownCpuSeconds() };
  const startedAtMs = performance.now();
  const report = await generate(plan);
  const tookSeconds = (performance.now() - startedAtMs) / 1000;
  const serverSeconds = server.cpuSeconds() - before.server;
  const known = serverSeconds + report.cpuSeconds + ownCpuSeconds() - before.own;
  return {
    ...report,
    cpuSecondsPer1000: (1000 * serverSeconds) / report.answeredInAll,
    generatorCpuSecondsPer1000: (1000 * report.cpuSeconds) / report.answeredInAll,
    /** How many cores other programs kept busy meanwhile. */
    othersCores: Math.max(0, machineBusySeconds() - before.machine - known) / tookSeconds,
  };
}

/** Clients have cores of their own elsewhere. Here the generator goes first, where it may, so that it measures no wait of its own. */
function raise(pid) {
  try {
    setPriority(pid, generatorNiceness);
  } catch {
    // Only root may; the report says how late the generator was.
  }
}

const ownCpuSeconds = () => cpuSeconds([process.pid]);

/** Runs the generator; `plan` as generator/src/plan.rs says it. */
export function generate(plan) {
  return new Promise((resolve, reject) => {
    const child = execFile(binary("generator"), { maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      if (error !== null) reject(new Error(`the generator failed: ${stderr || error.message}`));
      else resolve(JSON.parse(stdout));
    });
    raise(child.pid);
    child.stdin.end(JSON.stringify(plan));
  });
}
