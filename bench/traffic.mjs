/**
 * `npm run bench -- traffic [--only tenants,lengths,slo] [--seed N] [--cases WORD] [--seconds 3] [--items 4000] [--slos 20]`: the
 * real batcher under kinds of traffic, on a virtual clock, beside references that know more. `npm run prove -- storms` has
 * storms of retries.
 *
 * tenants: many tenants and one that floods for --seconds. The p50 and p99 of the victims ÷ the same without the flood, the
 * share of their calls that is refused, all results a second ÷ those in order of arrival, and p50 and p99 ÷ those of a
 * reference that takes turns in front of the batcher.
 *
 * lengths: --items items of different lengths, with `weigh`. The share of calls answered in time, with their deadlines told as
 * `timeoutMs`, told with `refuseLate`, and not told, each ÷ the best of 54 rules that know what every item costs (chosen on
 * another seed); and the p99 of the shorter and the longer half where no deadline is told, ÷ that of the best rule that drops
 * nothing.
 *
 * slo: the highest Poisson rate at which 99 % of the calls are answered within an SLO, by bisection over --slos SLOs, as a share
 * of the staggered ceiling, for five named cases and ten drawn ones.
 */
import { parseArgs } from "node:util";
import { auto, createBatcher, greedy } from "sheaf";
import { virtualClock } from "sheaf/testing";
import { bestRule, figuresOf, lengthWorkloads, oracleLatencies, runMsOf, trafficOf } from "./lib/lengths.mjs";
import { machine, table } from "./lib/machine.mjs";
import { drawnCases, goodput, namedCases, tunedQueueDelay, windowed } from "./lib/slo.mjs";
import { share, shareByPriority, shareReference, workloadOf } from "./lib/tenants.mjs";

const text = (value) => ({ type: "string", default: value });
const { values } = parseArgs({
  options: {
    only: text("tenants,lengths,slo"),
    seed: text("1"),
    cases: text(""),
    seconds: text("3"),
    items: text("4000"),
    slos: text("20"),
  },
});
const [seed, seconds, items, slos] = [values.seed, values.seconds, values.items, values.slos].map(Number);
const kinds = { tenants, lengths, slo };
const chosen = values.only.split(",");
if (![seed, seconds, items, slos].every(Number.isInteger) || seconds < 1 || items < 100 || slos < 1) {
  console.error("--seed, --seconds >= 1, --items >= 100 and --slos >= 1 must be integers");
  process.exit(2);
}
if (!chosen.every((name) => Object.hasOwn(kinds, name))) {
  console.error(`--only takes ${Object.keys(kinds).join(", ")}`);
  process.exit(2);
}
const isChosen = ({ name }) => name.includes(values.cases);
console.log(`${machine()}\nnpm run bench -- traffic ${process.argv.slice(2).join(" ")}\n`);
for (const name of chosen) console.log(`${name}\n\n${table(await kinds[name]())}\n`);

async function tenants() {
  const inOrder = "first in, first out";
  const contenders = {
    [inOrder]: (workload) => share(workload, { tenantKey: "none", overloadOrder: "arrival" }),
    "newest first under overload": (workload) => share(workload, { tenantKey: "none" }),
    fairKey: (workload) => share(workload),
    "groupKey by tenant": (workload) => share(workload, { tenantKey: "groupKey" }),
    "the flooder made bulk": shareByPriority,
    reference: shareReference,
  };
  const workloads = [20, 40].flatMap((victims) =>
    [0.4, 5, 20].flatMap((times) =>
      [false, true].flatMap((bursts) =>
        [1, 4].map((slots) => ({
          name: `${victims} victims, x ${times}${bursts ? ", on and off" : ""}, slots ${slots}`,
          victims,
          times,
          bursts,
          slots,
        })),
      ),
    ),
  );
  const rows = [["", "victims' p50", "p99", "refused", "throughput", "p50 ÷ reference", "p99"]];
  const ratio = (value) => value.toFixed(2);
  for (const { name, ...kind } of workloads.filter(isChosen)) {
    const of = { ...kind, durationS: seconds, seed };
    const alone = await share(workloadOf({ ...of, times: 0 }), { tenantKey: "none" });
    const figures = {};
    for (const [contender, run] of Object.entries(contenders)) figures[contender] = await run(workloadOf(of));
    for (const [contender, { p50, p99, refused, perS }] of Object.entries(figures))
      rows.push([
        `${name}: ${contender}`,
        ratio(p50 / alone.p50),
        ratio(p99 / alone.p99),
        `${(100 * refused).toFixed(1)} %`,
        ratio(perS / figures[inOrder].perS),
        ratio(p50 / figures.reference.p50),
        ratio(p99 / figures.reference.p99),
      ]);
  }
  return rows;
}

async function lengths() {
  const rows = [["workload", "oracle", "told", "refuseLate", "not told", "p99 shorter", "longer", "late", "refused"]];
  const shown = (number, digits) => (Number.isNaN(number) ? "–" : number.toFixed(digits));
  for (const workload of lengthWorkloads(1).filter(isChosen)) {
    const calls = trafficOf(workload, items, seed);
    const [best, bestUntold] = [true, false].map((told) => {
      // Without deadlines, the rule that is best for patient callers: the one for hasty callers starves the long half.
      const judged = told ? workload : { ...workload, times: 10 };
      const own = told ? calls : trafficOf(judged, items, seed);
      return figuresOf(own, oracleLatencies(judged, own, bestRule(judged, items, seed + 7919, told)));
    });
    const told = await measured(workload, calls, { told: true });
    const refusing = await measured(workload, calls, { told: true, refuseLate: 1 });
    const untold = figuresOf(calls, (await measured(workload, calls)).latenciesMs);
    rows.push([
      workload.name,
      shown(best.inTime, 3),
      shown(figuresOf(calls, told.latenciesMs).inTime / best.inTime, 3),
      shown(figuresOf(calls, refusing.latenciesMs).inTime / best.inTime, 3),
      shown(untold.inTime / best.inTime, 3),
      shown(untold.shorterMs / bestUntold.shorterMs, 2),
      shown(untold.longerMs / bestUntold.longerMs, 2),
      `${shown((100 * refusing.late) / (items - refusing.refused), 1)} %`,
      `${shown((100 * refusing.refused) / items, 1)} %`,
    ]);
  }
  return rows;
}

/** Latencies of the calls, NaN without a result, and how many were refused, or accepted and late. */
async function measured(workload, calls, { told = false, ...options } = {}) {
  const clock = virtualClock();
  const run = async (batch) => {
    const tokens = batch.map((call) => call.tokens);
    const sum = tokens.reduce((total, each) => total + each, 0);
    await clock.sleep(runMsOf(workload, sum, Math.max(...tokens), batch.length));
    return batch;
  };
  const { maxBatchSize, slots: concurrency } = workload;
  const weigh = (call) => call.tokens;
  const batcher = createBatcher(run, { clock, maxBatchSize, maxQueueSize: Infinity, concurrency, weigh, ...options });
  const latenciesMs = new Float64Array(calls.length).fill(Number.NaN);
  let [refused, late] = [0, 0];
  for (const call of calls)
    clock.at(call.atMs, () => {
      batcher(call, { timeoutMs: told ? call.timeoutMs : undefined }).then(
        () => (latenciesMs[call.index] = clock.now() - call.atMs),
        (error) => (error.code === "QUEUE_FULL" ? refused++ : late++),
      );
    });
  await clock.idle();
  await batcher.close();
  return { latenciesMs, refused, late };
}

async function slo() {
  const run = { seed, slos };
  /** Options of `createBatcher` by case. */
  const contenders = {
    "eager (greedy)": () => () => ({ policy: greedy() }),
    "window of SLO ÷ 10": () => windowed,
    "Triton's delay, tuned": (one) => tunedQueueDelay(one, run),
    "auto()": () => () => ({ policy: auto() }),
    "auto({ latencyBudgetMs }), timeoutMs":
      () =>
      ({ sloMs }) => ({ policy: auto({ latencyBudgetMs: sloMs }), timeoutMs: sloMs }),
    "auto(), timeoutMs":
      () =>
      ({ sloMs }) => ({ timeoutMs: sloMs }),
  };
  const rows = [["F, a, W, SLO (ms)", "ceiling/s", ...Object.keys(contenders)]];
  for (const cases of [namedCases, drawnCases(seed, 10)]) {
    const shares = [];
    for (const one of cases.filter(isChosen)) {
      const own = [];
      for (const optionsOf of Object.values(contenders)) own.push(await goodput(one, await optionsOf(one), run));
      shares.push(own);
      rows.push([one.name, one.ceilingPerS.toFixed(0), ...own.map((found) => found.toFixed(3))]);
    }
    if (shares.length === 0) continue;
    const mean = (index) => shares.reduce((sum, own) => sum + own[index], 0) / shares.length;
    rows.push(["mean", "", ...Object.keys(contenders).map((_, index) => mean(index).toFixed(3))]);
  }
  return rows;
}
