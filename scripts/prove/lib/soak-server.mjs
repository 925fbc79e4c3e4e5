import { median } from "../../../bench/lib/machine.mjs";
import { Ledger } from "./chaos/ledger.mjs";
import { Requests } from "./chaos/requests.mjs";
import { Served } from "./chaos/served.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const ratePerS = 40;

/**
 * `sheaf serve` in a process of its own under steady mixed load (good, failing, slow and broken requests, deadlines,
 * clients that leave), its memory, file handles and latency looked at `samples` times.
 */
export async function soakServer({ seconds, draw, samples: count = 50 }) {
  const server = new Served("thread");
  const ledger = new Ledger();
  const samples = [];
  let latenciesMs = [];
  await server.start();
  const requests = new Requests(server, ledger, draw, { isCalm: true, answered: (ms) => latenciesMs.push(ms) });
  const startedAtMs = performance.now();
  for (let sample = 1; sample <= count && server.crash === undefined; sample++) {
    const untilMs = startedAtMs + (1000 * seconds * sample) / count;
    while (performance.now() < untilMs) {
      void requests.send();
      await sleep(draw.between(0, 2000 / ratePerS));
    }
    while (requests.open > 0) await sleep(20);
    latenciesMs.sort((a, b) => a - b);
    const at = (rank) => latenciesMs[Math.floor(rank * latenciesMs.length)] ?? 0;
    samples.push({ ...server.resources(), p50: at(0.5), p99: at(0.99) });
    latenciesMs = [];
  }
  requests.closeConnections();
  const { crash } = server;
  await server.close();
  const fifth = Math.ceil(samples.length / 5);
  const levelOf = (part) =>
    Object.fromEntries(Object.keys(samples[0]).map((key) => [key, median(part.map((sample) => sample[key]))]));
  return { ledger, crash, early: levelOf(samples.slice(fifth, 2 * fifth)), late: levelOf(samples.slice(-fifth)) };
}
