/**
 * `npm run bench -- across-services [--calls 500] [--rounds 5] [--lookup-ms 5]`: that many concurrent calls to a service
 * on this machine, one request a call against batches; both ask the same function, in the same process, in turns. Some
 * seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import Fastify from "fastify";
import { batchClient, itemEndpoint } from "sheaf/adapters/http";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "500" },
    rounds: { type: "string", default: "5" },
    "lookup-ms": { type: "string", default: "5" },
  },
});
const [calls, rounds, lookupMs] = [Number(values.calls), Number(values.rounds), Number(values["lookup-ms"])];
if (!(calls >= 1 && calls <= 100_000 && rounds >= 1 && rounds <= 100 && lookupMs >= 0 && lookupMs <= 1000)) {
  console.error("--calls 1 … 100000, --rounds 1 … 100, --lookup-ms 0 … 1000");
  process.exit(2);
}

async function lookUp({ id }) {
  if (lookupMs > 0) await sleep(lookupMs);
  return { id, name: `item ${id}` };
}

const app = Fastify();
let requests = 0;
app.addHook("onRequest", async () => void requests++);
app.post("/one", ({ body }) => lookUp(body));
app.register(itemEndpoint(lookUp, { concurrency: 100 }).fastify, { url: "/many" });
const url = await app.listen({ port: 0, host: "127.0.0.1" });

const ways = {
  "one request a call": () => async (item) => {
    const headers = { "content-type": "application/json" };
    return (await fetch(`${url}/one`, { method: "POST", headers, body: JSON.stringify(item) })).json();
  },
  "batchClient": () => batchClient(`${url}/many`, { maxBatchSize: 100 }),
}; // prettier-ignore

const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, { ms: [], requests: [] }]));
for (let round = 0; round <= rounds; round++) {
  const names = round % 2 === 0 ? Object.keys(ways) : Object.keys(ways).reverse();
  for (const name of names) {
    const call = ways[name]();
    requests = 0;
    const startedAtMs = performance.now();
    const results = await Promise.all(Array.from({ length: calls }, (_, id) => call({ id })));
    const ms = performance.now() - startedAtMs;
    if (results.some(({ id }, i) => id !== i)) throw new Error(`${name}: a caller got another's result`);
    if (round === 0) continue; // until the compiler is done
    figures[name].ms.push(ms);
    figures[name].requests.push(requests);
  }
}
await app.close();

console.log(
  `${machine()}\nnpm run bench -- across-services --calls ${calls} --rounds ${rounds} --lookup-ms ${lookupMs}\n`,
);
const base = figures["one request a call"];
console.log(
  table([
    [`${calls} concurrent calls`, "requests", "time", "ratio"],
    ...Object.entries(figures).map(([name, { ms, requests: sent }]) => [
      name,
      median(sent),
      `${median(ms).toFixed(0)} ms`,
      `${median(base.ms.map((each, i) => each / ms[i])).toFixed(1)} ×`,
    ]),
  ]),
);
