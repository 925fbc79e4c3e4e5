/**
 * `npm run bench -- notifications [--calls 500] [--rounds 5] [--latency-ms 20]`: that many concurrent sends with
 * expo-server-sdk against a receiver on this machine that takes its time, one request a send against `expoPush`, in turns.
 * Needs the client: `cd integration && npm ci`. Some seconds.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";
import { expoPush } from "sheaf/adapters/notifications";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "500" },
    rounds: { type: "string", default: "5" },
    "latency-ms": { type: "string", default: "20" },
  },
});
const [calls, rounds, latencyMs] = [Number(values.calls), Number(values.rounds), Number(values["latency-ms"])];
if (!(calls >= 1 && calls <= 10_000 && rounds >= 1 && rounds <= 100 && latencyMs >= 0 && latencyMs <= 1000)) {
  console.error("--calls 1 … 10000, --rounds 1 … 100, --latency-ms 0 … 1000");
  process.exit(2);
}

let requests = 0;
const server = createServer(async (request, response) => {
  requests++;
  const body = Buffer.concat(await request.toArray());
  const messages = JSON.parse(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body);
  if (latencyMs > 0) await sleep(latencyMs);
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ data: messages.map(({ to }) => ({ status: "ok", id: to })) }));
}).listen(0, "127.0.0.1");
await once(server, "listening");
process.env.EXPO_BASE_URL = `http://127.0.0.1:${server.address().port}`;
const { Expo } = await expoServerSdk();

const ways = {
  "one request a send": () => {
    const expo = new Expo();
    return async (message) => (await expo.sendPushNotificationsAsync([message]))[0];
  },
  // Expo's own limit of 600 a second would be what is measured.
  "expoPush": () => expoPush(new Expo(), { rateLimit: { items: 1_000_000, perMs: 1000 } }),
}; // prettier-ignore

const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, { ms: [], requests: [] }]));
for (let round = 0; round <= rounds; round++) {
  const names = round % 2 === 0 ? Object.keys(ways) : Object.keys(ways).reverse();
  for (const name of names) {
    const send = ways[name]();
    requests = 0;
    const startedAtMs = performance.now();
    const messages = Array.from({ length: calls }, (_, n) => ({ to: `ExponentPushToken[${n}]`, body: `number ${n}` }));
    const tickets = await Promise.all(messages.map((message) => send(message)));
    const ms = performance.now() - startedAtMs;
    if (tickets.some(({ id }, n) => id !== messages[n].to)) throw new Error(`${name}: a ticket went to another caller`);
    if (round === 0) continue; // until the compiler is done
    figures[name].ms.push(ms);
    figures[name].requests.push(requests);
  }
}
server.closeAllConnections();
server.close();

console.log(
  `${machine()}\nnpm run bench -- notifications --calls ${calls} --rounds ${rounds} --latency-ms ${latencyMs}\n`,
);
const base = figures["one request a send"];
console.log(
  table([
    [`${calls} concurrent sends`, "requests", "time", "ratio"],
    ...Object.entries(figures).map(([name, { ms, requests: sent }]) => [
      name,
      median(sent),
      `${median(ms).toFixed(0)} ms`,
      `${median(base.ms.map((each, i) => each / ms[i])).toFixed(1)} ×`,
    ]),
  ]),
);

async function expoServerSdk() {
  const integration = createRequire(new URL("../integration/package.json", import.meta.url));
  try {
    return await import(pathToFileURL(integration.resolve("expo-server-sdk")).href);
  } catch (error) {
    console.error(`expo-server-sdk is not installed: cd integration && npm ci (${error.message})`);
    return process.exit(1);
  }
}
