/**
 * `npm run prove -- soak [--minutes 10] [--seed N]`: mixed load on the real clock, every feature at once, on the batcher in
 * this process and on `sheaf serve` in another. Every call must settle with its own result or a legitimate error; memory,
 * file handles and latency must be as flat at the end as they were after the first fifth.
 */
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { machine, median, table } from "../../bench/lib/machine.mjs";
import { mixedCalls } from "./lib/mixed-calls.mjs";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { drawing } from "./lib/random.mjs";
import { soakServer } from "./lib/soak-server.mjs";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, seed: { type: "string", default: "1" } },
});
const minutes = Number(values.minutes);
if (!(minutes >= 0.1 && minutes <= 120)) {
  console.error(`--minutes must be a number from 0.1 to 120, got ${JSON.stringify(values.minutes)}`);
  process.exit(2);
}
// Flat: the later level exceeds the earlier one by less than this. Caches of the engine move that much.
const heapGrowthMib = 2;
const residentGrowthMib = 24;
const callsPerTurn = 20;
const turnMs = 4;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

console.log(`${machine()}\nnpm run prove -- soak --minutes ${minutes} --seed ${values.seed}\n`);
const serverPart = soakServer({ seconds: 60 * minutes, draw: drawing(seededRandom(Number(values.seed) + 1)) });

const counts = { ok: 0, error: 0, timeout: 0, aborted: 0, refused: 0, wrong: 0 };
let pending = 0;
let made = 0;
const { batchers, make } = mixedCalls({
  random: seededRandom(Number(values.seed)),
  begun: () => {
    made += 1;
    pending += 1;
    return (outcome, detail) => {
      pending -= 1;
      counts[outcome] += 1;
      if (outcome === "wrong") console.error(detail);
    };
  },
});

const endsAtMs = Date.now() + minutes * 60_000;
const samples = [];
let nextSampleAtMs = Date.now();
while (Date.now() < endsAtMs) {
  for (let call = 0; call < callsPerTurn; call++) make();
  await sleep(turnMs);
  if (Date.now() < nextSampleAtMs) continue;
  nextSampleAtMs = Date.now() + (minutes * 60_000) / 50;
  // Nothing in flight, so that only what stays is weighed.
  await Promise.all(batchers.map((batcher) => batcher.drain()));
  collect();
  samples.push(process.memoryUsage().heapUsed / 2 ** 20);
}
// A map in progress fails when its batcher closes: first everything must have ended.
for (let look = 0; look < 3000 && pending > 0; look++) await sleep(10);
await Promise.all(batchers.map((batcher) => batcher.close({ graceMs: 5_000 })));
await sleep(10);
report(await serverPart);

function report(served) {
  const stats = batchers.map((batcher) => batcher.stats());
  console.log(
    table([
      ["batcher", "batches", "mean size", "ok", "error", "timeout", "aborted", "rejected", "left"],
      ...stats.map(({ name, batches, meanBatchSize, items, queued, inFlight }) => [
        name,
        batches,
        meanBatchSize.toFixed(1),
        items.ok,
        items.error,
        items.timeout,
        items.aborted,
        items.rejected,
        queued + inFlight,
      ]),
    ]),
  );
  const fifth = Math.ceil(samples.length / 5);
  const early = median(samples.slice(fifth, 2 * fifth));
  const late = median(samples.slice(-fifth));
  console.log(`\n${made} calls and lists: ${JSON.stringify(counts)}, ${pending} never settled`);
  console.log(
    `heap after warm-up ${early.toFixed(2)} MiB, at the end ${late.toFixed(2)} MiB (${samples.length} samples)`,
  );
  const { ledger, crash } = served;
  const { sent, answered, lost, twice, hung, wrong } = ledger;
  console.log(
    `\nserver: ${JSON.stringify({ sent, answered, lost, twice, hung, wrong })}, ${JSON.stringify(ledger.outcomes)}`,
  );
  for (const [when, level] of [["after warm-up", served.early], ["at the end", served.late]]) {
    const { residentMib, handles, p50, p99 } = level;
    console.log(`${when}: ${residentMib.toFixed(1)} MiB resident, ${handles} handles, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
  } // prettier-ignore
  for (const example of ledger.examples) console.error(example);
  const verdicts = {
    "every call settled": pending === 0,
    "no wrong result or error": counts.wrong === 0,
    "nothing left in a queue or in flight": stats.every(({ queued, inFlight }) => queued + inFlight === 0),
    [`the heap grew by less than ${heapGrowthMib} MiB`]: late - early < heapGrowthMib,
    "every request had its one answer": ledger.isKept && crash === undefined,
    [`the server grew by less than ${residentGrowthMib} MiB`]:
      served.late.residentMib - served.early.residentMib < residentGrowthMib,
    "the server holds no more file handles than before": served.late.handles <= served.early.handles + 5,
    "the server's median latency has not doubled": served.late.p50 < 2 * served.early.p50,
  };
  for (const [promise, isKept] of Object.entries(verdicts)) console.log(`${isKept ? "✔" : "✖"} ${promise}`);
  if (crash !== undefined) console.error(crash);
  process.exitCode = Object.values(verdicts).every(Boolean) ? 0 : 1;
}
