// CPU of a call in this process alone, in nanoseconds: `node bench/lib/concurrency-cpu.mjs WAVE CONCURRENCY`, in waves of so many calls,
// with a fixed or a "learned" concurrency.
import { createBatcher } from "sheaf";
import { median } from "./machine.mjs";

const [wave, concurrency] = process.argv.slice(2);
const options = concurrency === "learned" ? {} : { concurrency: Number(concurrency) };
const batcher = createBatcher(async (items) => items, { maxBatchSize: 32, maxQueueSize: 1_000_000, ...options });
const calls = new Array(Number(wave));

async function spend(cpuMs) {
  const start = process.cpuUsage();
  for (let waves = 1; ; waves++) {
    for (let item = 0; item < calls.length; item++) calls[item] = batcher(item);
    await Promise.all(calls);
    const { user, system } = process.cpuUsage(start);
    if (user + system > 1000 * cpuMs) return (1000 * (user + system)) / (waves * calls.length);
  }
}

// Until the compiler is done.
await spend(1000);
const samples = [];
for (let sample = 0; sample < 5; sample++) samples.push(await spend(100));
console.log(median(samples));
process.exit();
