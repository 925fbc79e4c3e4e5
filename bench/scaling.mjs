/**
 * `npm run bench -- scaling [--hours 4] [--seed 1] [--write]`: a day with bursts, and workers that an autoscaler adds and removes by the
 * slots needed, by the length of the queue, or by CPU. The target of each is the cheapest that answers 99.2 % in time on another
 * seed; beside them, those of an oracle that knows the arrivals in advance. On the virtual clock: the figures do not depend on
 * the machine. --write makes docs/reports/scaling: the table, and a picture of the workers.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { callsOf, clairvoyant, day } from "./lib/day.mjs";
import { machine, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    hours: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
    write: { type: "boolean", default: false },
  },
});
const [hours, seed] = [values.hours, values.seed].map(Number);
if (!(Number.isInteger(hours) && hours >= 1 && hours <= 24 && Number.isInteger(seed))) {
  console.error("--hours must be an integer from 1 to 24, and --seed a whole number");
  process.exit(2);
}
const tuned = { hours, seed: seed + 1_000_000 };
const judged = { hours, seed };
/** The cheapest first. */
const targets = {
  "slots-needed": [1.3, 1.2, 1.1, 1, 0.9, 0.8],
  queue: [80, 40, 20, 10, 5, 2],
  cpu: [0.97, 0.95, 0.9, 0.8, 0.7, 0.6],
};
/** In hand for another day. */
const inTimeTuned = 0.992;

const rows = [];
for (const [by, list] of Object.entries(targets)) {
  let best;
  for (const target of list) {
    const found = await day({ by, target }, tuned);
    if (found.inTime >= inTimeTuned && (best === undefined || found.hours < best.hours)) best = { target, ...found };
    // A lower target costs more.
    if (best !== undefined) break;
  }
  rows.push({ by, target: best?.target, ...(await day({ by, target: best?.target ?? list.at(-1) }, judged)) });
  if (process.stderr.isTTY) process.stderr.write(`\r${by} `);
}
const shares = [1, 0.97, 0.94, 0.91, 0.88, 0.85, 0.8];
const counts = callsOf(judged);
for (const share of shares) {
  const found = await day(clairvoyant(counts, share), judged);
  if (found.inTime < 0.99 && share !== shares.at(-1)) continue;
  rows.push({ by: "clairvoyant", ...found });
  break;
}
const least = rows.at(-1).hours;
const heading = `npm run bench -- scaling --hours ${hours} --seed ${seed}`;
const text = table([
  ["scaled by", "target", "answered in time", "worker hours", "÷ clairvoyant", "most workers"],
  ...rows.map((row) => [
    row.by,
    row.target ?? (row.by === "clairvoyant" ? "–" : "none"),
    row.inTime.toFixed(4),
    row.hours.toFixed(1),
    (row.hours / least).toFixed(2),
    Math.max(...row.changes.map(([, workers]) => workers)),
  ]),
]);
console.log(`${machine()}\n${heading}\n\n${text}\n`);
const [own, ...others] = rows.slice(0, 3);
const met = own.inTime >= 0.99 && others.every((other) => other.hours > own.hours);
console.log(`${met ? "met   " : "MISSED"}  99 % in time, and fewer worker hours than by queue or CPU`);
process.exitCode = met ? 0 : 1;
if (values.write) await write();

async function write() {
  const { chartSpec, colourOf, quantity, sizes } = await import("../packages/sheaf-server/dist/load/report/chart.js");
  const { renderCharts } = await import("../packages/sheaf-server/dist/load/report/render.js");
  const points = rows.flatMap(({ by, changes }) =>
    [...changes, [hours * 3_600_000, changes.at(-1)[1]]].map(([atMs, workers]) => ({
      configuration: by,
      hour: atMs / 3_600_000,
      workers,
    })),
  );
  const title = "Workers over a day";
  const spec = (size) =>
    chartSpec(points, size, {
      height: 320,
      mark: { type: "line", interpolate: "step-after", strokeWidth: 1.5 },
      encoding: {
        x: quantity("hour", { axis: { title: "Hour" } }),
        y: quantity("workers", { axis: { title: "Workers" } }),
        color: colourOf(rows.map(({ by }) => by)),
      },
    });
  const [picture] = await renderCharts([{ name: "workers", title, reading: "", spec }], sizes.wide);
  const folder = `${root}/docs/reports/scaling`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/workers.svg`, picture);
  writeFileSync(
    `${folder}/README.md`,
    `# Workers over a day

A day of ${hours} hours: 20 calls a second on average, 0.3 of that at its start and end and 1.7 in the middle, and ${3 * hours} bursts to twice the
rate for five minutes. A run of n items takes 0.5 + 0.1 n s, at most 32 at once; answers are due after 4 s. A worker takes batches 30 s after
the decision to start it; decisions are made every 15 s, and a worker goes when none of five minutes asked for it. Made by

\`\`\`sh
${heading} --write
\`\`\`

on a virtual clock: the figures do not depend on the machine. Each target is the cheapest of six that answers ${100 * inTimeTuned} % in time on another
day. Where none does, the row has the last of them. "Clairvoyant" is an oracle that knows the arrivals in advance and starts workers in no time.

${text}

![${title}](workers.svg)
`,
  );
}
