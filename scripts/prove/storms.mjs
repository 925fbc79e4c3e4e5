/**
 * `npm run prove -- storms [--count 20] [--seed N]`: storms of retries on the real batcher with its default options, on the
 * virtual clock. Clients wait for an answer for 1 to 3 s and try twice more; for ten seconds three times as many come. Each
 * storm must end: 0.95 of the goodput of before within 6 s after the surge, at least 0.9 of capacity during it (0.6 where clients
 * leave before six full runs). And the proof proves itself: in order of arrival the same storms do not end.
 */
import { parseArgs } from "node:util";
import { machine, table } from "../../bench/lib/machine.mjs";
import { drawnStorms, ride } from "../../bench/lib/storms.mjs";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "20" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e6)) },
  },
});
const count = Number(values.count);
const seed = Number(values.seed);
if (!(Number.isInteger(count) && count >= 1 && Number.isInteger(seed))) {
  console.error("--count must be an integer >= 1, and --seed an integer");
  process.exit(2);
}
console.log(`${machine()}\nnpm run prove -- storms --count ${count} --seed ${seed}\n`);

const rows = [
  ["run", "batch", "slots", "load", "patience", "seen", "back", "during", "attempts", "in order of arrival"],
];
let failed = 0;
let inOrderEnded = 0;
for (const storm of drawnStorms(seed, count)) {
  const { fixedMs, perItemMs, maxBatchSize, slots, utilisation, retries } = storm;
  const now = await ride(storm);
  const inOrder = await ride(storm, { overloadOrder: "arrival" });
  if (inOrder.backS < Infinity) inOrderEnded++;
  const seesOverloadInTime = 6 * (fixedMs + perItemMs * maxBatchSize) <= retries.patienceMs;
  const holds = now.backS <= 6 && now.during >= (seesOverloadInTime ? 0.9 : 0.6);
  if (!holds) failed++;
  rows.push([
    `${fixedMs.toFixed(1)} + ${perItemMs.toFixed(2)} n ms`,
    String(maxBatchSize),
    String(slots),
    String(utilisation),
    `${retries.patienceMs} ms`,
    retries.seen ? "yes" : "no",
    `${now.backS.toFixed(2)} s${holds ? "" : " ✖"}`,
    now.during.toFixed(2),
    now.attempts.toFixed(2),
    inOrder.backS < Infinity ? `${inOrder.backS.toFixed(2)} s` : "never",
  ]);
}
console.log(table(rows));
console.log(
  `\n${count - failed} of ${count} storms ended in time; in order of arrival ${inOrderEnded} of ${count} end at all`,
);
process.exitCode = failed === 0 && inOrderEnded < count ? 0 : 1;
