/**
 * Random and broken requests over real sockets, a good one right after each: `npm run prove -- fuzz [count] [seed]`,
 * 100,000 by default, in some minutes. No 5xx, no crash, no leak.
 */
import { machine } from "../bench/lib/machine.mjs";
import { fuzz } from "./lib/fuzz/http.mjs";

const [count = 100_000, seed = 20_260_101] = process.argv.slice(2).map(Number);
console.log(machine());
console.log(`npm run prove -- fuzz ${count} ${seed}`);
const startedAtMs = performance.now();
const { statuses, before, after } = await fuzz({
  count,
  seed,
  progress: (done) => done % 10_000 === 0 && console.error(`${done} of ${count}`),
});
console.log(`${count} cases in ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s; replies by status:`);
console.table(statuses);
const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);
console.log(
  `heap ${mib(before.heapBytes)} → ${mib(after.heapBytes)} MiB, resident ${mib(before.rssBytes)} → ${mib(after.rssBytes)} MiB`,
);
console.log(`left at the end: ${after.connections} connections, ${JSON.stringify(after.models)}`);
const leaked = after.heapBytes - before.heapBytes > 20 * 2 ** 20;
if (leaked || after.models.some(({ queued, inFlight }) => queued + inFlight > 0)) {
  console.error("Something was left behind.");
  process.exitCode = 1;
}
