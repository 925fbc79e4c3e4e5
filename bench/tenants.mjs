/**
 * `npm run bench -- tenants [--seconds 10] [--seed 1] [--only "x 20"] [--write]`: many tenants and one that floods, on the real
 * batcher and the virtual clock, beside a reference that takes turns in front of it. Prints, for each workload, the p50 and
 * p99 of the victims ÷ the same without the flood, the share of their calls that is refused, all results a second ÷ those
 * in order of arrival, and p50 and p99 ÷ the reference's. --write makes docs/reports/tenants, whose pictures are of a flood that
 * comes and goes.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { machine, table } from "./lib/machine.mjs";
import { share, shareByPriority, shareReference, visit, visitOf, workloadOf } from "./lib/tenants.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const durationS = Number(values.seconds);
const seed = Number(values.seed);
if (!(durationS >= 1 && durationS <= 60 && Number.isInteger(seed))) {
  console.error("--seconds must be 1 to 60, and --seed an integer");
  process.exit(2);
}

const inOrder = "first in, first out";
const byDefault = "newest first under overload";
const contenders = {
  [inOrder]: (workload) => share(workload, { tenantKey: "none", overloadOrder: "arrival" }),
  [byDefault]: (workload) => share(workload, { tenantKey: "none" }),
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

const only = values.only === "" ? "" : ` --only "${values.only}"`;
const heading = `npm run bench -- tenants --seconds ${values.seconds} --seed ${seed}${only}`;
console.log(`${machine()}\n${heading}\n`);
const rows = [["", "victims' p50", "p99", "refused", "throughput", "p50 ÷ reference", "p99"]];
const ratio = (value) => value.toFixed(2);
for (const { name, ...kind } of workloads.filter((workload) => workload.name.includes(values.only))) {
  const alone = await share(workloadOf({ ...kind, times: 0, durationS, seed }), { tenantKey: "none" });
  const workload = workloadOf({ ...kind, durationS, seed });
  const figuresOf = {};
  for (const [contender, run] of Object.entries(contenders)) figuresOf[contender] = await run(workload);
  for (const [contender, { p50, p99, refused, perS }] of Object.entries(figuresOf))
    rows.push([
      `${name}: ${contender}`,
      ratio(p50 / alone.p50),
      ratio(p99 / alone.p99),
      `${(100 * refused).toFixed(1)} %`,
      ratio(perS / figuresOf[inOrder].perS),
      ratio(p50 / figuresOf.reference.p50),
      ratio(p99 / figuresOf.reference.p99),
    ]);
  if (process.stderr.isTTY) process.stderr.write(`\r${name} `);
}
console.log(table(rows));
if (values.write) await write(table(rows));

async function write(results) {
  const { chartSpec, colourOf, logAxis, sizes } = await import("../packages/sheaf-server/dist/load/report/chart.js");
  const { renderCharts } = await import("../packages/sheaf-server/dist/load/report/render.js");
  const named = ["fairKey", byDefault, inOrder];
  const points = [];
  for (const configuration of named) {
    const { latencyMsBySecond, itemsBySecond } = await contenders[configuration](visitOf(seed));
    for (let second = 0; second < visit.end; second++) {
      const { ok, rejected } = itemsBySecond[second];
      points.push({ configuration, second, ms: latencyMsBySecond[second].p99, refused: rejected / (ok + rejected) });
    }
  }
  const x = {
    field: "second",
    type: "quantitative",
    axis: { title: `Second (the flood comes at ${visit.from} and goes at ${visit.to})`, tickCount: visit.end },
  };
  const latency = logAxis(
    points.map(({ ms }) => ms),
    "p99 of the twenty (ms, log scale)",
  );
  const refused = { axis: { title: "Calls of the twenty that are refused", format: ".0%" } };
  const picture = (name, title, y) => ({
    name,
    title,
    reading: "",
    spec: (size) =>
      chartSpec(points, size, {
        height: 280,
        mark: { type: "line", strokeWidth: 2 },
        encoding: { x, y: { type: "quantitative", ...y }, color: colourOf(named) },
      }),
  });
  const pictures = [
    picture("p99", "The p99 of twenty tenants while a flood comes and goes", { field: "ms", ...latency }),
    picture("refused", "Their refused calls", { field: "refused", ...refused }),
  ];
  const drawn = await renderCharts(pictures, sizes.wide);
  const folder = `${root}/docs/reports/tenants`;
  mkdirSync(folder, { recursive: true });
  pictures.forEach(({ name }, index) => writeFileSync(`${folder}/${name}.svg`, drawn[index]));
  writeFileSync(
    `${folder}/README.md`,
    `# Tenants and a flood

Tenants with 2 % of capacity each share a batcher (10 + 0.3 n ms, batches of 32, a queue of 1,000), and one more sends many times
the capacity, steadily or on and off. Made by

\`\`\`sh
${heading} --write
\`\`\`

on a virtual clock: the figures do not depend on the machine. \`--seed\` draws other traffic.

![${pictures[0].title}](p99.svg)

Twenty tenants, one slot; from second ${visit.from} to ${visit.to} one more tenant sends five times the capacity. First in, first
out, the twenty wait behind a full queue. Newest first, the default without \`fairKey\`, those who are answered are answered soon,
but most are refused, as the next picture shows. With [\`fairKey\`](../../guide/tenants.md) none is.

![${pictures[1].title}](refused.svg)

p50 and p99 are those of the tenants with 2 %, ÷ the same without the flood; "throughput" counts the results of all, ÷ first in,
first out. The last two columns are p50 and p99 ÷ those of the reference, which takes turns item by item in front of the batcher
and drops the newest item of the tenant that has most.

\`\`\`text
${results.trimEnd()}
\`\`\`
`,
  );
}
