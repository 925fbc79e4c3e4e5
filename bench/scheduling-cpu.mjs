/**
 * `npm run bench -- scheduling-cpu [--rounds 7]`: processor time a call that auto costs over greedy, on the real batcher
 * and clock, with a batch function that does nothing: waves of 1,000 calls, and single calls one after the other.
 */
import { parseArgs } from "node:util";
import { auto, createBatcher, greedy } from "sheaf";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "7" } } });
const rounds = Number(values.rounds);
if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 100)) {
  console.error("--rounds must be an integer, 1 to 100");
  process.exit(2);
}
const policies = { greedy, auto };
const scenarios = {
  "waves of 1,000": async (batcher) => {
    for (let wave = 0; wave < 100; wave++) {
      const calls = new Array(1000);
      for (let i = 0; i < 1000; i++) calls[i] = batcher(i);
      await Promise.all(calls);
    }
    return 100_000;
  },
  "single calls": async (batcher) => {
    for (let i = 0; i < 20_000; i++) await batcher(i);
    return 20_000;
  },
};

console.log(`${machine()}\nnpm run bench -- scheduling-cpu --rounds ${rounds}\n`);
const rows = [["CPU ns a call, median", ...Object.keys(policies), "auto over greedy", "target"]];
const targets = { "waves of 1,000": 100, "single calls": 300 };
for (const [scenario, run] of Object.entries(scenarios)) {
  const ns = { greedy: [], auto: [] };
  const over = [];
  for (let round = -1; round < rounds; round++) {
    for (const [name, policy] of Object.entries(policies)) {
      const batcher = createBatcher((items) => items, { policy: policy(), maxQueueSize: Infinity });
      await run(batcher);
      const before = process.cpuUsage();
      const calls = await run(batcher);
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) ns[name].push((1000 * (user + system)) / calls);
      await batcher.close();
    }
    if (round >= 0) over.push(ns.auto.at(-1) - ns.greedy.at(-1));
  }
  const whole = (number) => number.toFixed(0);
  rows.push([
    scenario,
    whole(median(ns.greedy)),
    whole(median(ns.auto)),
    whole(median(over)),
    `<= ${targets[scenario]}`,
  ]);
}
console.log(table(rows));
