/**
 * `npm run bench -- slo [--drawn 10] [--seed 1] [--slos 30] [--only WORD] [--write]`: the highest Poisson rate at which 99 % of
 * the calls are answered within an SLO, by bisection, as a share of the staggered ceiling: five named cases and some drawn at
 * random. Exits with 1 where a target is missed. On the virtual clock: the figures do not depend on the machine. --write makes docs/reports/slo.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { auto, greedy } from "sheaf";
import { root } from "../scripts/lib/files.mjs";
import { machine, table } from "./lib/machine.mjs";
import { drawnCases, goodput, namedCases, tunedQueueDelay, windowed } from "./lib/slo.mjs";

const { values } = parseArgs({
  options: {
    drawn: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    slos: { type: "string", default: "30" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const [drawn, seed, slos] = [values.drawn, values.seed, values.slos].map(Number);
if (![drawn, seed, slos].every(Number.isInteger) || drawn < 0 || slos < 1) {
  console.error("--drawn and --seed must be whole numbers, and --slos one from 1 on: the SLOs that a run lasts");
  process.exit(2);
}

const run = { seed, slos };
/** Options of `createBatcher` by case. */
const contenders = {
  "eager (greedy)": () => () => ({ policy: greedy() }),
  "window of SLO ÷ 10": () => windowed,
  "Triton's delay, tuned": (one) => tunedQueueDelay(one, run),
  "auto()": () => () => ({ policy: auto() }),
  "auto({ latencyBudgetMs }), timeoutMs":
    () =>
    ({ sloMs }) => ({
      policy: auto({ latencyBudgetMs: sloMs }),
      timeoutMs: sloMs,
    }),
  "auto(), timeoutMs":
    () =>
    ({ sloMs }) => ({ timeoutMs: sloMs }),
};
const names = Object.keys(contenders).filter((name) => name.includes(values.only));

async function measured(cases) {
  const rows = [];
  for (const one of cases) {
    const shares = {};
    for (const name of names) shares[name] = await goodput(one, await contenders[name](one), run);
    rows.push({ one, shares });
    if (process.stderr.isTTY) process.stderr.write(`\r${rows.length} of ${cases.length} `);
  }
  return rows;
}

const mean = (rows, name) => rows.reduce((sum, { shares }) => sum + shares[name], 0) / rows.length;
const shown = (share) => share.toFixed(3);
const tableOf = (rows) =>
  table([
    ["F, a, W, SLO (ms)", "ceiling/s", ...names],
    ...rows.map(({ one, shares }) => [
      one.name,
      one.ceilingPerS.toFixed(0),
      ...names.map((name) => shown(shares[name])),
    ]),
    ["mean", "", ...names.map((name) => shown(mean(rows, name)))],
  ]);

const heading = `npm run bench -- slo --drawn ${drawn} --seed ${seed} --slos ${slos}`;
console.log(`${machine()}\n${heading}\n`);
const groups = [
  { title: "Named cases", cases: namedCases, least: 0.95 },
  { title: `Drawn, seed ${seed}`, cases: drawnCases(seed, drawn), least: 0.845 },
].filter(({ cases }) => cases.length > 0);
const own = "auto(), timeoutMs";
const targets = [];
for (const group of groups) {
  const { title, cases, least } = group;
  group.rows = await measured(cases);
  group.table = tableOf(group.rows);
  console.log(`${title}\n\n${group.table}\n`);
  if (!names.includes(own) || !names.includes("auto()")) continue;
  const average = mean(group.rows, own);
  targets.push({ met: average >= least, text: `${title}: mean of ${own} ${shown(average)} (>= ${least})` });
  const gains = group.rows.map(({ one, shares }) => ({ one, gain: shares[own] - shares["auto()"] }));
  const worst = gains.reduce((least, each) => (each.gain < least.gain ? each : least));
  targets.push({
    met: worst.gain >= -0.01,
    text: `${title}: least gain over auto() ${shown(worst.gain)} (>= -0.01), at ${worst.one.name}`,
  });
}
for (const { met, text } of targets) console.log(`${met ? "met   " : "MISSED"}  ${text}`);
if (values.write) await write();
process.exitCode = targets.some(({ met }) => !met) ? 1 : 0;

async function write() {
  const { chartSpec, colourOf, quantity, sizes } = await import("../packages/sheaf-server/dist/load/report/chart.js");
  const { renderCharts } = await import("../packages/sheaf-server/dist/load/report/render.js");
  const drawnInPicture = names.filter((name) => !name.includes("latencyBudgetMs"));
  const rows = groups.flatMap((group) => group.rows);
  const points = rows.flatMap(({ one, shares }) =>
    drawnInPicture.map((configuration) => ({ case: one.name, configuration, share: shares[configuration] })),
  );
  const title = "Rate within the SLO ÷ staggered ceiling";
  const spec = (size) =>
    chartSpec(points, size, {
      height: { step: 24 },
      mark: { type: "point", filled: true, size: 90 },
      encoding: {
        x: quantity("share", { scale: { domain: [0, 1] }, axis: { title, format: ".1f" } }),
        y: {
          field: "case",
          type: "nominal",
          sort: rows.map(({ one }) => one.name),
          axis: { title: "F, a, slots, SLO (ms)", grid: true, labelLimit: 260 },
        },
        color: colourOf(drawnInPicture),
      },
    });
  const [picture] = await renderCharts([{ name: "goodput", title, reading: "", spec }], sizes.wide);
  const folder = `${root}/docs/reports/slo`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/goodput.svg`, picture);
  writeFileSync(
    `${folder}/README.md`,
    `# Goodput within an SLO

The highest Poisson rate at which 99 % of the calls are answered within the SLO, found by bisection, as a share of a ceiling: W slots
that start one after the other, with batches of b items as large as (1 + 1/W)(F + a · b) ≤ SLO allows. A run of n items takes
F + a · n, at most 256 at once. What it means, and what to set: [How many workers](../../guide/capacity.md#how-many-workers). Made by

\`\`\`sh
${heading} --write
\`\`\`

on a virtual clock: the figures do not depend on the machine. \`--seed\` draws other cases and other arrivals.

${groups.map((group) => `## ${group.title}\n\n${group.table}`).join("\n\n")}

"Eager" sends all that waits as soon as a slot is free. The window is \`fixedWindow()\` with a \`maxWaitMs\` of a tenth of the SLO. Triton's
delay is told the batch size of the ceiling, and has the best of four delays for the case, found on another seed. The last column is the
default policy with nothing but the deadline.

![${title}](goodput.svg)
`,
  );
}
