/**
 * `npm run bench -- order-keys [--rounds 5]`: CPU of a call that no order key blocks, while 10 and while 10,000 items
 * wait behind one that runs, and what those 10,000 cost to wait and to run. The two alternate in one process.
 */
import { parseArgs } from "node:util";
import { createBatcher, greedy } from "sheaf";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  console.error(`--rounds must be an integer from 1 to 100, got ${JSON.stringify(values.rounds)}`);
  process.exit(2);
}
console.log(`${machine()}\nnpm run bench -- order-keys --rounds ${rounds}\n`);

const callsARound = 3_000;
const few = 10;
const many = 10_000;

/** A batcher in which `blocked` items wait for the run of the first item of their key. */
async function withBlocked(blocked) {
  let end;
  const held = new Promise((resolve) => (end = resolve));
  const run = async (items) => {
    if (items[0] === "first") await held;
    return items;
  };
  const batcher = createBatcher(run, {
    policy: greedy(),
    maxQueueSize: 2 * many,
    orderKey: (item) => (typeof item === "string" ? "key" : undefined),
  });
  const first = batcher("first");
  await new Promise((resolve) => setTimeout(resolve, 5)); // it runs, alone
  const behind = Array.from({ length: blocked }, (_, i) => batcher(`behind ${i}`));
  await batcher(0);
  const finish = async () => {
    end();
    await Promise.all([first, ...behind]);
  };
  return { batcher, finish };
}

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

async function usACall(batcher) {
  const startUs = cpuUs();
  for (let call = 0; call < callsARound; call++) await batcher(call);
  return (cpuUs() - startUs) / callsARound;
}

const beside = [few, many];
const batchers = [];
for (const blocked of beside) batchers.push(await withBlocked(blocked));
for (const { batcher } of batchers) await usACall(batcher);
const figures = beside.map(() => []);
for (let round = 0; round < rounds; round++) {
  for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) figures[index].push(await usACall(batchers[index].batcher));
}
const ratio = median(figures[1].map((us, round) => us / figures[0][round]));
for (const { finish } of batchers) await finish();

const drains = [];
for (let round = 0; round < rounds; round++) {
  const startUs = cpuUs();
  const { finish } = await withBlocked(many);
  await finish();
  drains.push((cpuUs() - startUs) / many);
}

console.log(
  table([
    ["", "CPU µs", `× ${few} blocked`],
    ...beside.map((blocked, index) => [
      `one call at a time beside ${blocked} blocked items`,
      median(figures[index]).toFixed(1),
      index === 0 ? "1" : ratio.toFixed(2),
    ]),
    [`a blocked item of ${many}, from call to result`, median(drains).toFixed(1), ""],
  ]),
);
console.log(
  `\n${ratio <= 1.5 ? "met   " : "MISSED"}  a call beside ${many} blocked items: ${ratio.toFixed(2)} (<= 1.5)`,
);
process.exitCode = ratio <= 1.5 ? 0 : 1;
