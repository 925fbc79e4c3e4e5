/**
 * `npm run bench -- tenants [--seconds 10] [--seed 1] [--only "x 20"]`: many tenants and one that floods, on the real
 * batcher and the virtual clock, beside a reference that takes turns in front of it. Prints, for each workload, the p50 and
 * p99 of the victims ÷ the same without the flood, the share of their calls that is refused, and all results a second ÷ those
 * in order of arrival.
 */
import { parseArgs } from "node:util";
import { machine, table } from "./lib/machine.mjs";
import { share, shareByPriority, shareReference, workloadOf } from "./lib/tenants.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const durationS = Number(values.seconds);
const seed = Number(values.seed);
if (!(durationS >= 1 && durationS <= 60 && Number.isInteger(seed))) {
  console.error("--seconds must be 1 to 60, and --seed an integer");
  process.exit(2);
}

const contenders = {
  "first in, first out": (workload) => share(workload, { tenantKey: "none", overloadOrder: "arrival" }),
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

console.log(`${machine()}\nnpm run bench -- tenants --seconds ${values.seconds} --seed ${seed}\n`);
const rows = [["", "victims' p50", "p99", "refused", "throughput"]];
const times = (ratio) => ratio.toFixed(2);
for (const { name, ...kind } of workloads.filter((workload) => workload.name.includes(values.only))) {
  const alone = await share(workloadOf({ ...kind, times: 0, durationS, seed }), { tenantKey: "none" });
  const workload = workloadOf({ ...kind, durationS, seed });
  let inOrderPerS;
  for (const [contender, run] of Object.entries(contenders)) {
    const { p50, p99, refused, perS } = await run(workload);
    inOrderPerS ??= perS;
    rows.push([
      `${name}: ${contender}`,
      times(p50 / alone.p50),
      times(p99 / alone.p99),
      `${(100 * refused).toFixed(1)} %`,
      times(perS / inOrderPerS),
    ]);
  }
  if (process.stderr.isTTY) process.stderr.write(`\r${name} `);
}
console.log(table(rows));
