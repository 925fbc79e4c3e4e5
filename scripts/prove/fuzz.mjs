/**
 * Random and hostile requests over real sockets to a server over HTTP and gRPC, and to a proxy, a good one right after each:
 * `npm run prove -- fuzz [--http 100000] [--grpc 10000] [--proxy 10000] [--seed 20260101]`, half an hour. No 5xx, no crash,
 * no leak; a value over a bound or that JavaScript would change is refused, every other one comes back. Then what each route costs for
 * each byte of its request, the worst ten by CPU, bytes held, bytes of reply and bytes of log.
 */
import { parseArgs } from "node:util";
import { machine } from "../../bench/lib/machine.mjs";
import { walkCosts } from "./lib/fuzz/costs.mjs";
import { fuzzGrpc } from "./lib/fuzz/grpc.mjs";
import { fuzz } from "./lib/fuzz/http.mjs";
import { fuzzProxy } from "./lib/fuzz/proxy.mjs";

const { values } = parseArgs({
  options: {
    http: { type: "string", default: "100000" },
    grpc: { type: "string", default: "10000" },
    proxy: { type: "string", default: "10000" },
    seed: { type: "string", default: "20260101" },
  },
});
const seed = Number(values.seed);
const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);

async function attack(name, count, run) {
  if (!(count > 0)) return;
  const startedAtMs = performance.now();
  const progress = (done) => done % 10_000 === 0 && console.error(`${name}: ${done} of ${count}`);
  const { ends, before, after } = await run({ count, seed, progress });
  console.log(`${name}: ${count} cases in ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s; their ends:`);
  console.table(ends);
  console.log(
    `heap ${mib(before.heapBytes)} → ${mib(after.heapBytes)} MiB, resident ${mib(before.rssBytes)} → ${mib(after.rssBytes)} MiB`,
  );
  const { connections, models = [] } = after;
  console.log(`left at the end: ${connections} connections, ${JSON.stringify(models)}`);
  const hasLeaked = after.heapBytes - before.heapBytes > 20 * 2 ** 20;
  if (!hasLeaked && models.every(({ queued, inFlight }) => queued + inFlight === 0)) return;
  console.error("Something was left behind.");
  process.exitCode = 1;
}

console.log(machine());
console.log(
  `npm run prove -- fuzz --http ${values.http} --grpc ${values.grpc} --proxy ${values.proxy} --seed ${values.seed}`,
);
await attack("HTTP", Number(values.http), fuzz);
await attack("gRPC", Number(values.grpc), fuzzGrpc);
await attack("proxy", Number(values.proxy), fuzzProxy);

const costs = await walkCosts();
console.log(`what ${costs.length} kinds of request cost, the worst ten of each:`);
for (const column of ["httpMs", "CPU µs/B", "held B/B", "reply B/B", "log B/B"]) {
  const worst = costs.sort((a, b) => b[column] - a[column]).slice(0, 10);
  console.table(worst.map(({ name, status, bytes, httpMs, ...rest }) => ({ name, status, bytes, [column]: +({ httpMs, ...rest })[column].toPrecision(3) }))); // prettier-ignore
}
const [open] = costs.filter(({ name }) => name.includes("(no key)")).sort((a, b) => b.httpMs - a.httpMs);
console.log(`the longest without a key: ${open.httpMs.toFixed(2)} ms of CPU, ${open.bytes} bytes, ${open.name}`);
