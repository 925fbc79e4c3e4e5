/**
 * `npm run prove -- fleet [--rate 300] [--seconds 20] [--ack-wait-ms 5000] [--hold-ms 1000] [--seed 1] [--only WORD]
 * [--cluster]`: two gateways, two workers and a nats-server, each a process, under load while one of them is killed, stopped,
 * cut off or drained; with `--cluster` on three NATS servers, which are killed and restarted. Every request must get its
 * own answer, once; it prints how long callers noticed the fault, and how many requests took longer than half a second. About 5
 * minutes.
 */
import { parseArgs } from "node:util";
import { machine, table } from "../../bench/lib/machine.mjs";
import { whyNoNats } from "../../test/support/nats-server.mjs";
import { faultsUnderLoad, fullQueue, poison, poisonUnderLoad } from "./lib/fleet-faults.mjs";

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "300" },
    seconds: { type: "string", default: "20" },
    "ack-wait-ms": { type: "string", default: "5000" },
    seed: { type: "string", default: "1" },
    "hold-ms": { type: "string", default: "1000" },
    only: { type: "string", default: "" },
    cluster: { type: "boolean", default: false },
  },
});
const number = (name, min, max) => {
  const value = Number(values[name]);
  if (value >= min && value <= max) return value;
  console.error(`--${name} must be a number from ${min} to ${max}, got ${JSON.stringify(values[name])}`);
  process.exit(2);
};
const rate = number("rate", 1, 2000);
const durationMs = 1000 * number("seconds", 3, 600);
const ackWaitMs = number("ack-wait-ms", 300, 60_000);
const seed = number("seed", 0, 2 ** 32 - 1);
const holdMs = number("hold-ms", 0, 60_000);
const { only, cluster: isCluster } = values;
const why = whyNoNats();
if (why !== undefined) process.exit(1);

const ms = (value) => `${Math.round(value)} ms`;
const rows = [
  [
    "fault",
    "sent",
    "answered",
    "refused, then repeated",
    "lost",
    "wrong",
    "runs per item",
    "p50",
    "p99",
    "longest",
    "felt for",
    "felt by",
  ],
];
/** By status; 0 is a connection that broke before an answer. */
const refusals = ({ statuses }) =>
  Object.entries(statuses)
    .filter(([status]) => ["0", "429", "503"].includes(status))
    .map(([status, count]) => `${status === "0" ? "cut" : status}: ${count}`)
    .join(", ") || "–";
const report = (seen) => {
  console.error(JSON.stringify(seen));
  if (seen.sent === undefined) return;
  const { name, sent, answered, unanswered, wrong, mixed, runsPerItem } = seen;
  const times = [seen.p50Ms, seen.p99Ms, seen.longestMs].map(ms);
  const felt = seen.recoveredMs === 0 ? ["–", "–"] : [ms(seen.recoveredMs), seen.late];
  rows.push([
    name,
    sent,
    answered,
    refusals(seen),
    unanswered,
    wrong + mixed,
    runsPerItem.toFixed(3),
    ...times,
    ...felt,
  ]);
};

await faultsUnderLoad({ rate, durationMs, ackWaitMs, holdMs, seed, report, only, isCluster });
const others = [];
const note = (seen) => {
  report(seen);
  others.push(seen);
};
if (!isCluster) {
  if ("a full queue".includes(only)) await fullQueue({ report: note });
  for (const isolation of ["process", "thread"]) if ("poison".includes(only)) await poison({ isolation, report: note });
  if ("poison under load".includes(only)) await poisonUnderLoad({ rate: Math.min(rate, 50), report: note });
}

console.log(
  `${machine()}; ${rate} requests/s, ack wait ${ackWaitMs} ms, hold ${holdMs} ms, ${isCluster ? "cluster of three, " : ""}seed ${seed}\n`,
);
console.log("Every request was answered with its own result, none twice.\n");
console.log(table(rows));
for (const { name, ...numbers } of others) console.log(`\n${name}: ${JSON.stringify(numbers)}`);
process.exit(0);
