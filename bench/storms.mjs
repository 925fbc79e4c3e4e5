/**
 * `npm run bench -- storms [--count 20] [--seed 1] [--write]`: storms of retries on the real batcher, on the virtual clock,
 * beside the same in order of arrival, with a queue without bound, and with a reference queue that knows no deadline. Prints
 * the table; --write makes docs/reports/storms, whose picture is the first storm's goodput over time.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { drawnStorms, ride, rideReference } from "./lib/storms.mjs";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    write: { type: "boolean", default: false },
  },
});
const count = Number(values.count);
const seed = Number(values.seed);
if (!(Number.isInteger(count) && count >= 1 && Number.isInteger(seed))) {
  console.error("--count must be an integer >= 1, and --seed an integer");
  process.exit(2);
}

const contenders = {
  "newest first (default)": (storm) => ride(storm),
  "order of arrival": (storm) => ride(storm, { overloadOrder: "arrival" }),
  "order of arrival, no bound": (storm) => ride(storm, { overloadOrder: "arrival", maxQueueSize: Infinity }),
  reference: rideReference,
  "deadline told": (storm) => ride(storm, { timeoutMs: storm.retries.patienceMs }),
};
/** The storm of the picture: 444 items a second, 0.8 of them asked for, clients that nobody sees leave after a second. */
const shown = {
  fixedMs: 20,
  perItemMs: 1,
  maxBatchSize: 16,
  slots: 1,
  utilisation: 0.8,
  capacityPerS: 16_000 / 36,
  retries: { patienceMs: 1000, seen: false },
  seed: 1,
};

const heading = `npm run bench -- storms --count ${count} --seed ${seed}`;
console.log(`${machine()}\n${heading}\n`);
const storms = drawnStorms(seed, count);
const rows = [
  ["", "storms that end", "back after: median", "worst", "goodput ÷ capacity during: least", "attempts: mean"],
];
for (const [name, rideWith] of Object.entries(contenders)) {
  const outcomes = [];
  for (const storm of storms) {
    outcomes.push(await rideWith(storm));
    if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${outcomes.length} of ${count} `);
  }
  const ended = outcomes.map(({ backS }) => backS).filter((backS) => backS < Infinity);
  rows.push([
    name,
    `${ended.length} of ${count}`,
    ended.length > 0 ? `${median(ended).toFixed(2)} s` : "–",
    ended.length > 0 ? `${Math.max(...ended).toFixed(2)} s` : "–",
    Math.min(...outcomes.map(({ during }) => during)).toFixed(2),
    (outcomes.reduce((sum, { attempts }) => sum + attempts, 0) / count).toFixed(2),
  ]);
}
console.log(table(rows));
if (values.write) await write(table(rows));

async function write(results) {
  const { chartSpec, colourOf, sizes } = await import("../packages/sheaf-server/dist/load/report/chart.js");
  const { renderCharts } = await import("../packages/sheaf-server/dist/load/report/render.js");
  const named = ["newest first (default)", "reference", "order of arrival", "order of arrival, no bound"];
  const points = [];
  for (const configuration of named) {
    const { goodput } = await contenders[configuration](shown);
    for (let second = 0; second < 31; second++)
      points.push({ configuration, second, share: (goodput.answeredPerS[second] ?? 0) / shown.capacityPerS });
  }
  const title = "Goodput through a storm of retries";
  const encoding = {
    x: {
      field: "second",
      type: "quantitative",
      axis: { title: "Second (three times the load from 4 to 14)", tickCount: 16 },
    },
    y: { field: "share", type: "quantitative", axis: { title: "Answers in time ÷ capacity", format: ".1f" } },
    color: colourOf(named),
  };
  const spec = (size) => chartSpec(points, size, { height: 300, mark: { type: "line", strokeWidth: 2 }, encoding });
  const [picture] = await renderCharts([{ name: "goodput", title, reading: "", spec }], sizes.wide);
  const folder = `${root}/docs/reports/storms`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/goodput.svg`, picture);
  writeFileSync(
    `${folder}/README.md`,
    `# Storms of retries

Four seconds at 0.7, 0.85 or 0.95 of capacity, ten seconds at three times that, seventeen at the first. Clients wait for an
answer for 1 to 3 seconds and try twice more, with the back-off of openai's clients. A storm has ended when the goodput stays
at 0.95 of what it was before for three seconds. Made by

\`\`\`sh
${heading} --write
\`\`\`

on a virtual clock: the figures do not depend on the machine. \`--seed\` draws other storms.

\`\`\`text
${results.trimEnd()}
\`\`\`

Where clients leave before six full runs, the first seconds of the surge are lost before overload shows: such storms end too,
and the least goodput is theirs.

The reference is a queue of its own that takes the newest first while the oldest has waited for more than five full runs.
"Deadline told" is the default with \`timeoutMs\` equal to the patience of the clients.

![${title}](goodput.svg)

One storm: 444 items a second at most, 0.8 of that asked for before and after, clients that leave unseen after a second. In
order of arrival, with and without a bound, the storm goes on after its cause is gone: both lines are at 0.
`,
  );
}
