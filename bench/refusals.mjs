/**
 * `npm run bench -- refusals [--model use-lite] [--rounds 3] [--seconds 10] [--factor 4]`: what a model that computes still
 * gives when four times as much comes as it can serve, with the generator on the same cores and a deadline of 30 s. In each
 * round a closed loop of 64 callers measures the capacity, and then an open loop brings four times that. Goodput are answers
 * within the ten seconds; a refusal's time is from when its request was sent, and a second figure leaves out the first two
 * seconds, in which most connections are opened. Exit 1 where the medians miss 0.85 of the closed loop's goodput, or 50 ms
 * for the refusals' p99.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { builtinTemplate } from "../packages/sheaf-server/dist/load/builtin-payload.js";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { requestsFor } from "../packages/sheaf-server/dist/load/http/probe.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { bodiesFromTemplate } from "../packages/sheaf-server/dist/load/payload.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { root } from "../scripts/lib/files.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { addCpu, cpuByThread } from "./lib/thread-cpu.mjs";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "use-lite" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "10" },
    factor: { type: "string", default: "4" },
  },
});
const { model } = values;
const [rounds, seconds, factor] = [values.rounds, values.seconds, values.factor].map(Number);
const template = builtinTemplate(model);
if (template === undefined || !(rounds >= 1 && rounds <= 20 && seconds >= 1 && seconds <= 60 && factor > 1)) {
  console.error("--model takes use-lite or mlp, --rounds 1 to 20, --seconds 1 to 60 and --factor a number above 1");
  process.exit(2);
}
const needed = { goodput: 0.85, refusalMs: 50 };
const deadlineMs = 30_000;

console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}\nnpm run bench -- refusals --model ${model}\n`);
const rows = [["round", "closed/s", "offered/s", "goodput/s", "÷ closed", "429", "429 p50 ms", "429 p99 ms", "after 2 s", "HTTP thread, µs a request", "lag p99 ms"]]; // prettier-ignore
const figures = [];
for (let round = 1; round <= rounds; round++) figures.push(await ride(round));
const goodput = median(figures.map((figure) => figure.goodput));
const refusalMs = median(figures.map((figure) => figure.refusalMs));
console.log(table(rows));
console.log(`\nmedians: goodput ${goodput.toFixed(2)} of the closed loop's (needed ${needed.goodput}),`);
console.log(`refusals' p99 ${refusalMs.toFixed(1)} ms (needed ${needed.refusalMs})`);
process.exit(goodput >= needed.goodput && refusalMs <= needed.refusalMs ? 0 : 1);

async function ride(round) {
  const server = await serveModel({ entry: `${root}/packages/sheaf-server/dist/cli/main.js`, model });
  const url = new URL("/infer", server.origin);
  const requests = requestsFor(url, "POST", {}, bodiesFromTemplate(template, round));
  const load = async (pattern) => {
    const refusals = [];
    const target = timed(httpTarget({ url, requests, maxConnections: 4096 }), refusals);
    const shared = { configuration: model, target, clock: systemClock, durationMs: 1000 * seconds, seed: round };
    const before = cpuByThread(server.pid);
    const result = await runLoad({ ...shared, timeoutMs: deadlineMs, ...pattern }).finally(() => target.close());
    const cpu = new Map();
    addCpu(cpu, server.pid, before);
    const httpUs = (1000 * cpu.get("HTTP thread")) / result.requests;
    return { ...result, httpUs, refusals };
  };
  try {
    const closed = await load({ pattern: "closed", callers: 64, warmUpMs: 2000 });
    const ratePerS = factor * closed.achievedPerS;
    // The generator allows a million requests in flight.
    const timeoutMs = Math.min(deadlineMs, 9e8 / ratePerS);
    const open = await load({ pattern: "steady", ratePerS, timeoutMs });
    const at = (share, fromMs = 0) => {
      const sorted = open.refusals.filter(({ atMs }) => atMs >= fromMs).map(({ ms }) => ms).sort((a, b) => a - b); // prettier-ignore
      return sorted[Math.floor(sorted.length * share)] ?? 0;
    };
    const figure = { goodput: open.achievedPerS / closed.achievedPerS, refusalMs: at(0.99) };
    const shown = [closed.achievedPerS, open.offeredPerS, open.achievedPerS].map((perS) => perS.toFixed(0));
    const lag = open.sendLagMs.p99.toFixed(1);
    const refused = [open.refusals.length, ...[at(0.5), at(0.99), at(0.99, 2000)].map((ms) => ms.toFixed(1))];
    rows.push([round, ...shown, figure.goodput.toFixed(2), ...refused, open.httpUs.toFixed(0), lag]);
    return figure;
  } finally {
    await server.stop();
  }
}

/** A target that notes when each refused request was sent, and how long its refusal took. */
function timed(target, refusals) {
  const startMs = performance.now();
  return {
    get waited() {
      return target.waited;
    },
    close: () => target.close(),
    send(index, done) {
      const sentAt = performance.now();
      return target.send(index, (end) => {
        if (end.status === 429) refusals.push({ atMs: sentAt - startMs, ms: performance.now() - sentAt });
        done(end);
      });
    },
  };
}
