/**
 * Measures one contender in this process alone: `node --expose-gc bench/core-child.mjs NAME CALLS BATCH`. Writes
 * `{ cpuNs, bytes }` a call to stdout. CPU is the whole process, garbage collector included; bytes are what a call
 * holds while it is in flight.
 */
import { contender } from "./core-contenders.mjs";
import { median } from "./lib/machine.mjs";

const [name, callsText, batchText] = process.argv.slice(2);
const calls = Number(callsText);
const call = (await contender(name))(Number(batchText));
const promises = new Array(calls);

async function wave() {
  for (let item = 0; item < calls; item++) promises[item] = call(item);
  await Promise.all(promises);
}

async function wavesFor(cpuMs) {
  const start = process.cpuUsage();
  let waves = 0;
  let spentUs = 0;
  do {
    await wave();
    waves += 1;
    const { user, system } = process.cpuUsage(start);
    spentUs = user + system;
  } while (spentUs < cpuMs * 1_000);
  return (spentUs * 1_000) / (waves * calls);
}

// Every wave must bring back its own results, or the figure is of something else.
await wave();
for (let item = 0; item < calls; item++) {
  if ((await promises[item]) !== item) throw new Error(`${name}: call ${item} got ${await promises[item]}`);
}
// Until the compiler is done: its threads count as CPU, and a larger program keeps them busy longer.
await wavesFor(1_500);
const samples = [];
for (let sample = 0; sample < 5; sample++) samples.push(await wavesFor(80));

const held = [];
for (let sample = 0; sample < 5; sample++) {
  promises.fill(undefined);
  await new Promise((resolve) => setTimeout(resolve, 5));
  globalThis.gc();
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let item = 0; item < calls; item++) promises[item] = call(item);
  globalThis.gc();
  held.push((process.memoryUsage().heapUsed - before) / calls);
  await Promise.all(promises);
}
console.log(JSON.stringify({ cpuNs: median(samples), bytes: median(held) }));
process.exit(0);
