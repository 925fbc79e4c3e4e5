/**
 * `npm run bench -- fleet [--rounds 3] [--seconds 5] [--policy auto|window] [--rates 200,2000]`: what a queue between machines
 * costs. Two front ends and two workers, each a process, beside one process with two slots and no queue: latency added,
 * throughput as a share of the model's limit, CPU per request of each part, with the queue on disk and with plain core NATS.
 * Alternated, medians of the rounds.
 */
import { fork } from "node:child_process";
import { parseArgs } from "node:util";
import { startNats, whyNoNats } from "../test/support/nats-server.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { cpuMsOf } from "./lib/process-cpu.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "5" },
    policy: { type: "string", default: "auto" },
    rates: { type: "string", default: "200,2000" },
  },
});
const rounds = Number(values.rounds);
const durationMs = Number(values.seconds) * 1000;
const rates = values.rates.split(",").filter(Boolean).map(Number);
const { policy } = values;
const isCount = (number, max) => Number.isFinite(number) && number > 0 && number <= max;
if (!isCount(rounds, 20) || !isCount(durationMs, 60_000) || !rates.every((rate) => isCount(rate, 20_000))) {
  console.error("--rounds takes 1 to 20, --seconds up to 60, and rates up to 20000");
  process.exit(2);
}
if (!["auto", "window"].includes(policy)) {
  console.error(`--policy must be auto or window, got ${JSON.stringify(policy)}`);
  process.exit(2);
}
if (whyNoNats() !== undefined) process.exit(1);
const callers = 256;
const slots = 2;
const full = 32;

/** A child process and its CPU time between two questions. */
class Child {
  #child;
  #usage;

  static async start(...words) {
    const child = new Child();
    child.#child = fork(new URL("fleet-child.mjs", import.meta.url), [...words, policy], { serialization: "advanced" });
    await child.#answer();
    return child;
  }

  tell(message) {
    const answer = this.#answer();
    this.#child.send(message);
    return answer;
  }

  async mark() {
    this.#usage = await this.tell({ what: "usage" });
  }

  async cpuMs() {
    const { user, system } = await this.tell({ what: "usage" });
    return (user + system - this.#usage.user - this.#usage.system) / 1000;
  }

  end() {
    this.#child.disconnect();
  }

  #answer() {
    return new Promise((resolve, reject) => {
      this.#child.once("message", (message) => (message.error ? reject(new Error(message.error)) : resolve(message)));
    });
  }
}

async function startSystem(name) {
  if (name === "in-process") {
    const one = await Child.start("in-process", "-", "-");
    return { name, fronts: [one], workers: [], nats: undefined, end: async () => one.end() };
  }
  const nats = await startNats();
  const durability = name === "queue on disk" ? "file" : "none";
  const start = (role) => Child.start(role, nats.url, durability);
  const workers = await Promise.all([start("worker"), start("worker")]);
  const fronts = await Promise.all([start("front"), start("front")]);
  const end = async () => {
    for (const child of [...fronts, ...workers]) child.end();
    await nats.stop();
  };
  return { name, fronts, workers, nats, end };
}

async function measure({ fronts, workers, nats }, what) {
  const share = 1 / fronts.length;
  await Promise.all([...fronts, ...workers].map((child) => child.mark()));
  const natsCpuMs = nats && cpuMsOf(nats.pid);
  const seen = await Promise.all(
    fronts.map((front, index) =>
      front.tell(
        what === "closed"
          ? { what, callers: callers * share, durationMs }
          : { what: "open", rate: what * share, durationMs, seed: 1 + index },
      ),
    ),
  );
  const latencies = seen.flatMap((one) => one.latencies).sort((a, b) => a - b);
  const sizes = seen.flatMap((one) => one.sizes);
  const done = what === "closed" ? seen.reduce((sum, one) => sum + one.done, 0) : latencies.length;
  const failed = seen.reduce((sum, one) => sum + one.failed, 0);
  if (failed > 0) throw new Error(`${failed} calls failed`);
  const usOf = async (children) => {
    const times = await Promise.all(children.map((child) => child.cpuMs()));
    return (1000 * times.reduce((sum, ms) => sum + ms, 0)) / done;
  };
  return {
    p50: latencies[latencies.length >> 1],
    p99: latencies[Math.floor(latencies.length * 0.99)],
    rate: what === "closed" ? (1000 * done) / Math.max(...seen.map(({ tookMs }) => tookMs)) : undefined,
    size: sizes.reduce((sum, size) => sum + size, 0) / sizes.length,
    frontUs: await usOf(fronts),
    workerUs: await usOf(workers),
    natsUs: nats === undefined ? 0 : (1000 * (cpuMsOf(nats.pid) - natsCpuMs)) / done,
  };
}

console.log(`${machine()}; policy ${policy}, ${rounds} rounds of ${values.seconds} s, medians.`);
await queueCosts();

/** Latency, throughput and CPU of calls through the queue, beside calls that need none. */
async function queueCosts() {
  const names = ["in-process", "queue on disk", "core NATS"];
  const systems = [];
  const loads = [...rates, "closed"];
  const results = new Map(names.map((name) => [name, new Map(loads.map((what) => [what, []]))]));
  let fullRunMs;
  try {
    for (const name of names) systems.push(await startSystem(name));
    ({ fullRunMs } = await systems[0].fronts[0].tell({ what: "calibrate" }));
    // The compiler's work, and the careful start of workers, are not what is measured.
    for (const system of systems) await measure(system, rates[0]);
    for (let round = 0; round < rounds; round++)
      for (const what of loads)
        for (const system of systems) {
          results
            .get(system.name)
            .get(what)
            .push(await measure(system, what));
          console.error(`round ${round + 1}: ${system.name}, ${what}`);
        }
  } finally {
    for (const system of systems) await system.end();
  }

  const of = (name, what, figure) =>
    median(
      results
        .get(name)
        .get(what)
        .map((seen) => seen[figure]),
    );
  const ms = (value) => `${value.toFixed(1)} ms`;
  const added = (name, what, figure) => {
    const difference = of(name, what, figure) - of("in-process", what, figure);
    return name === "in-process" ? "–" : `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(1)} ms`;
  };
  const limit = (1000 * slots * full) / fullRunMs;
  console.log(
    `Model: 5 + 0.2 n ms, at most ${full}; a full batch takes ${ms(fullRunMs)} here, so ${slots} slots serve ${Math.round(limit)} items/s.\n`,
  );
  for (const rate of rates) {
    console.log(`${rate} requests/s\n`);
    console.log(
      table([
        ["", "p50", "added", "p99", "added", "batch seen", "front end", "worker", "nats-server"],
        ...names.map((name) => [
          name,
          ms(of(name, rate, "p50")),
          added(name, rate, "p50"),
          ms(of(name, rate, "p99")),
          added(name, rate, "p99"),
          of(name, rate, "size").toFixed(1),
          ...["frontUs", "workerUs", "natsUs"].map((figure) => `${Math.round(of(name, rate, figure))} µs`),
        ]),
      ]),
    );
    console.log("");
  }
  console.log(`Closed loop of ${callers}\n`);
  console.log(
    table([
      ["", "items/s", "of the limit", "batch seen", "front end", "worker", "nats-server"],
      ...names.map((name) => [
        name,
        Math.round(of(name, "closed", "rate")),
        (of(name, "closed", "rate") / limit).toFixed(2),
        of(name, "closed", "size").toFixed(1),
        ...["frontUs", "workerUs", "natsUs"].map((figure) => `${Math.round(of(name, "closed", figure))} µs`),
      ]),
    ]),
  );
  console.log("\nµs: CPU per request; the front end's includes making the load, as in-process does.");
}
