/**
 * `npm run bench -- lengths [--items 4000] [--seeds 1] [--first 100] [--only WORD] [--no-weigh]`: items of different lengths.
 * The real batcher on a virtual clock, with `weigh`, and the default policy. For each of 16 workloads: the share of calls
 * answered in time, with their deadlines told as `timeoutMs`, told with `refuseLate`, and not told, each ÷ the best of 54
 * rules that know what every item costs (chosen on another seed); the p99 of the shorter and the longer half where no
 * deadline is told, ÷ that of the best rule that drops nothing; and, by running the same arrivals with each refused
 * call admitted, how many refusals were wrong. `--no-weigh`: by size alone. `--first`: the first seed, for traffic that
 * nobody has seen. `--picture` draws instead who waits for whom: a line for each item that comes around a long one, with
 * and without weights.
 */
import { parseArgs } from "node:util";
import { createBatcher } from "sheaf";
import { virtualClock } from "sheaf/testing";
import { bestRule, figuresOf, lengthWorkloads, oracleLatencies, runMsOf, trafficOf } from "./lib/lengths.mjs";
import { machine, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    items: { type: "string", default: "4000" },
    seeds: { type: "string", default: "1" },
    first: { type: "string", default: "100" },
    only: { type: "string", default: "" },
    replayed: { type: "string", default: "40" },
    weigh: { type: "boolean", default: true },
    picture: { type: "boolean", default: false },
  },
  allowNegative: true,
});
const [items, seeds, first, replayed] = [values.items, values.seeds, values.first, values.replayed].map(Number);
if (![items, seeds, first, replayed].every(Number.isInteger) || items < 100 || seeds < 1 || replayed < 0) {
  console.error("--items must be an integer >= 100, --seeds >= 1, --first and --replayed integers");
  process.exit(2);
}

/** Latencies of the calls, NaN without a result; how many were refused or accepted and late; and which were refused. */
async function measured(workload, calls, { told = false, refuseLate, spared } = {}) {
  const clock = virtualClock();
  const startedAtMs = new Float64Array(calls.length);
  const run = async (batch) => {
    for (const { index } of batch) startedAtMs[index] = clock.now();
    const tokens = batch.map((call) => call.tokens);
    const sum = tokens.reduce((total, each) => total + each, 0);
    await clock.sleep(runMsOf(workload, sum, Math.max(...tokens), batch.length));
    return batch;
  };
  const options = { clock, maxBatchSize: workload.maxBatchSize, maxQueueSize: Infinity, concurrency: workload.slots };
  if (values.weigh) Object.assign(options, { weigh: (call) => call.tokens });
  if (refuseLate !== undefined) Object.assign(options, { refuseLate });
  const batcher = createBatcher(run, options);
  const latenciesMs = new Float64Array(calls.length).fill(Number.NaN);
  const refused = [];
  let late = 0;
  for (const call of calls)
    clock.at(call.atMs, () => {
      const timeoutMs = told && call.index !== spared ? call.timeoutMs : undefined;
      batcher(call, { timeoutMs }).then(
        () => (latenciesMs[call.index] = clock.now() - call.atMs),
        (error) => (error.code === "QUEUE_FULL" ? refused.push(call.index) : late++),
      );
    });
  await clock.idle();
  await batcher.close();
  return { latenciesMs, startedAtMs, refused, late };
}

/** Of refused calls, the share that would have been answered in time had they been admitted, one at a time. */
async function wrongRefusals(workload, calls, refused) {
  const step = Math.max(1, Math.floor(refused.length / Math.max(1, replayed)));
  const sample = refused.filter((_, at) => at % step === 0).slice(0, replayed);
  let wrong = 0;
  for (const spared of sample) {
    const { latenciesMs } = await measured(workload, calls, { told: true, refuseLate: 1, spared });
    if (latenciesMs[spared] <= calls[spared].timeoutMs) wrong++;
  }
  return { wrong, sampled: sample.length };
}

/** Each item in order of arrival: its wait (·), and its run (█), by the columns of 5 ms; the number is its tokens. */
async function picture(workload, weigh) {
  values.weigh = weigh;
  const calls = trafficOf(workload, 600, first);
  const { latenciesMs, startedAtMs } = await measured(workload, calls);
  // Around a long one.
  const fromMs = calls.find(({ index, tokens }) => index > 300 && tokens > 2500).atMs - 20;
  const shownCalls = calls.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + 125);
  const column = (ms) => Math.max(0, Math.round((ms - fromMs) / 5));
  console.log(`\n${workload.name}, ${weigh ? "by weight" : "by size alone"}\n`);
  for (const { index, tokens, atMs } of shownCalls) {
    const [came, began, ended] = [atMs, startedAtMs[index], atMs + latenciesMs[index]].map(column);
    const line = " ".repeat(came) + "·".repeat(began - came) + "█".repeat(Math.max(1, ended - began));
    console.log(`${String(tokens).padStart(6)} ${line.length > 110 ? `${line.slice(0, 109)}…` : line}`);
  }
}

const shown = (number, digits = 2) => (Number.isNaN(number) ? "–" : number.toFixed(digits));
console.log(`${machine()}\nnpm run bench -- lengths --items ${items} --seeds ${seeds} --first ${first}\n`);
if (values.picture) {
  const workload = lengthWorkloads(1).find(({ name }) => name.includes(values.only || "summed x 1, 0.8, 10"));
  for (const weigh of [false, true]) await picture(workload, weigh);
  process.exit();
}
const rows = [
  ["workload", "oracle", "told", "refuseLate", "not told", "p99 shorter", "longer", "late", "refused", "wrong"],
];
for (const workload of lengthWorkloads(1).filter(({ name }) => name.includes(values.only)))
  for (let seed = first; seed < first + seeds; seed++) {
    const calls = trafficOf(workload, items, seed);
    const [best, bestUntold] = [true, false].map((told) => {
      // Without deadlines, the rule that is best for patient callers: the one for hasty callers starves the long half.
      const judged = told ? workload : { ...workload, times: 10 };
      const own = told ? calls : trafficOf(judged, items, seed);
      return figuresOf(own, oracleLatencies(judged, own, bestRule(judged, items, seed + 7919, told)));
    });
    const told = await measured(workload, calls, { told: true });
    const refusing = await measured(workload, calls, { told: true, refuseLate: 1 });
    const untold = await measured(workload, calls);
    const { wrong, sampled } = await wrongRefusals(workload, calls, refusing.refused);
    const figures = figuresOf(calls, untold.latenciesMs);
    rows.push([
      workload.name,
      shown(best.inTime, 3),
      shown(figuresOf(calls, told.latenciesMs).inTime / best.inTime, 3),
      shown(figuresOf(calls, refusing.latenciesMs).inTime / best.inTime, 3),
      shown(figures.inTime / best.inTime, 3),
      shown(figures.shorterMs / bestUntold.shorterMs),
      shown(figures.longerMs / bestUntold.longerMs),
      `${shown((100 * refusing.late) / (items - refusing.refused.length), 1)} %`,
      `${shown((100 * refusing.refused.length) / items, 1)} %`,
      sampled === 0 ? "–" : `${wrong} of ${sampled}`,
    ]);
    if (process.stderr.isTTY) process.stderr.write(`\r${rows.length - 1} `);
  }
console.log(table(rows));
