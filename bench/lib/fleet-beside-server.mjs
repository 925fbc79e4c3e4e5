// A fleet beside one server with as many workers: the same requests over HTTP to both, in turn.
import { Agent } from "node:http";
import { load, post } from "../../test/support/fleet-load.mjs";
import { startFleet, startServers } from "../../test/support/fleet-processes.mjs";
import { median, table } from "./machine.mjs";
import { cpuMsOf, idleMs } from "./process-cpu.mjs";

/** A worker that has just started looks at one item before it takes a batch, for three ack waits. */
const ackWaitMs = 1000;
const warmUpMs = 4 * ackWaitMs;
const callers = 256;
const full = 32;
/** Of the model whose limit is approached. */
const limitRunMs = [10, 0.3];

/** One server, and a fleet of two gateways, with so many workers each. */
async function startBoth(workers, [fixedMs, perItemMs]) {
  const RUN_MS = `${fixedMs} ${perItemMs}`;
  const server = await startServers(1, { RUN_MS, WORKERS: String(workers) });
  const fleetEnv = { RUN_MS, WORKERS: "1", NATS_ACK_WAIT_MS: String(ackWaitMs) };
  const fleet = await startFleet({ env: fleetEnv, via: "direct", workers }).catch(async (error) => {
    await server.stop();
    throw error;
  });
  return {
    systems: { "one server": { gateways: server.gateways, workers: [] }, fleet },
    stop: async () => {
      await server.stop();
      await fleet.stop();
    },
  };
}

/** Latency at `rate` requests a second: of one server with two workers, and of a fleet of two gateways and two workers. */
export async function addedLatency({ rate, runMs, rounds, durationMs }) {
  const { systems, stop } = await startBoth(2, runMs);
  const results = await measured(systems, { rounds, stop }, async (gateways) => {
    const seen = await load({ gateways, rate, durationMs });
    if (seen.wrong + seen.unanswered > 0) throw new Error(JSON.stringify(seen));
    return {
      p50: seen.p50Ms,
      p99: seen.p99Ms,
      size: seen.meanBatchSize,
      queueMs: seen.meanQueueMs,
      done: seen.answered,
    };
  });
  console.log(`\n${rate} requests/s over HTTP, a model of ${runMs[0]} + ${runMs[1]} n ms, two workers\n`);
  const ms = (value) => `${value.toFixed(1)} ms`;
  console.log(
    table([
      ["", "p50", "p99", "batch", "mean wait", ...cpuColumns],
      ...Object.entries(results).map(([name, of]) => [
        name,
        ms(of("p50")),
        ms(of("p99")),
        of("size").toFixed(1),
        ms(of("queueMs")),
        ...cpu(of),
      ]),
    ]),
  );
}

/** Requests a second of callers that always wait for an answer, as a share of what the model's slots could do. */
export async function throughput({ workerCounts, rounds, durationMs }) {
  const [fixedMs, perItemMs] = limitRunMs;
  const rows = [["", "workers", "requests/s", "of the model's limit", ...cpuColumns, "idle cores"]];
  for (const workers of workerCounts) {
    const { systems, stop } = await startBoth(workers, limitRunMs);
    const limit = (1000 * full * workers) / (fixedMs + perItemMs * full);
    const results = await measured(systems, { rounds, stop }, (gateways) => closed(gateways, durationMs));
    for (const [name, of] of Object.entries(results))
      rows.push([
        name,
        workers,
        Math.round(of("rate")),
        (of("rate") / limit).toFixed(2),
        ...cpu(of),
        of("idle").toFixed(2),
      ]);
  }
  console.log(`\nClosed loop of ${callers} over HTTP, a model of ${fixedMs} + ${perItemMs} n ms\n`);
  console.log(table(rows));
}

/** Calls `measure` for each system in turn, and adds the CPU of its processes. */
async function measured(systems, { rounds, stop }, measure) {
  const rows = new Map(Object.keys(systems).map((name) => [name, []]));
  try {
    // Many requests, so that the compiler's work is done: at a few hundred a second it would take minutes.
    for (const { gateways } of Object.values(systems)) await closed(gateways, warmUpMs);
    for (let round = 0; round < rounds; round++)
      for (const [name, { gateways, workers, nats }] of Object.entries(systems)) {
        const parts = { front: gateways, worker: workers, nats: nats === undefined ? [] : [nats] };
        const used = () => Object.values(parts).map((members) => members.reduce((ms, { pid }) => ms + cpuMsOf(pid), 0));
        const before = used();
        const idleBefore = idleMs();
        const startedAtMs = performance.now();
        const seen = await measure(gateways);
        const idle = (idleMs() - idleBefore) / (performance.now() - startedAtMs);
        const [front, worker, nats_] = used().map((ms, part) => (1000 * (ms - before[part])) / seen.done);
        rows.get(name).push({ ...seen, front, worker, nats: nats_, idle });
        console.error(`round ${round + 1}: ${name}, ${JSON.stringify(rows.get(name).at(-1))}`);
      }
  } finally {
    await stop();
  }
  return Object.fromEntries(
    [...rows].map(([name, all]) => [name, (key) => median(all.map(({ [key]: value }) => value))]),
  );
}

const cpuColumns = ["CPU a request: server or gateways", "workers", "nats-server"];
const cpu = (of) => ["front", "worker", "nats"].map((part) => `${Math.round(of(part))} µs`);

async function closed(gateways, durationMs) {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const startedAtMs = performance.now();
  let done = 0;
  const caller = async (id) => {
    while (performance.now() - startedAtMs < durationMs) {
      const { status, json } = await post(agent, `${gateways[id % gateways.length].origin}/infer`, { input: { id } });
      if (status !== 200 || json.output.id !== id) throw new Error(JSON.stringify({ status, json }));
      done++;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, id) => caller(id)));
  agent.destroy();
  return { done, rate: (1000 * done) / (performance.now() - startedAtMs) };
}
