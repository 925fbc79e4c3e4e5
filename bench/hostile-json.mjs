/**
 * What the bounds of JSON cost, beside JSON.parse of the same bytes, for bodies that are accepted, also the most expensive ones, and refused; then /livez while
 * twenty bodies of 10 MB of `[` arrive, beside a server that only receives them: `npm run bench -- hostile-json`. About a
 * minute; `npm run bench -- hostile-json flood` measures /livez alone.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer as createBareServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { exactJsonOf, jsonOf } from "../packages/sheaf-server/dist/http/bodies/body.js";
import { machine, median, table } from "./lib/machine.mjs";

const limits = { maxJsonKeys: 100_000, maxJsonArrays: 1_000_000 };
const floats = (count) => Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i)));
const tensor = (count) => ({ inputs: [{ name: "x", datatype: "FP32", shape: [1, count], data: floats(count) }] });
const sentence = "The cat sits outside and waits for the rain to end. ".repeat(10);
const record = (_, i) => ({ id: `id${i}`, value: 2.5, tags: ["a", "b"], text: sentence.slice(0, 100) });
const filled = (part) => Buffer.from(part.repeat(10_000_000 / part.length));
const accepted = [
  { name: "768 floats", value: tensor(768) },
  { name: "1 MB of floats", value: tensor(50_000) },
  { name: "a text", value: { input: sentence } },
  { name: "64 texts", value: { input: Array(64).fill(sentence) } },
  { name: "2,000 texts of 700 characters", value: { input: Array(2000).fill("word ".repeat(140)) } },
  {
    name: "2,000 texts of 5,000 characters",
    value: { input: Array(2000).fill("word ".repeat(1000)) },
  },
  { name: "10 MB of floats", value: tensor(500_000) },
  { name: "10,000 arrays of 3 floats", value: { input: Array.from({ length: 10_000 }, () => floats(3)) } },
  { name: "1 MB of floats, as JSON items", value: { input: floats(50_000) }, read: exactJsonOf },
  { name: "a record, as a JSON item", value: { input: record(0, 0) }, read: exactJsonOf },
  { name: "20,000 records, as JSON items", value: Array.from({ length: 20_000 }, record), read: exactJsonOf },
].map((body) => ({ ...body, bytes: Buffer.from(JSON.stringify(body.value)) }));
const keysOf = (count) => Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join();
/** Within the bounds, and as expensive as these allow. */
const dear = [
  { name: "10 MB of 0,", bytes: Buffer.from(`[${filled("0,")}0]`) },
  { name: '10 MB of "a",', bytes: Buffer.from(`[${filled('"a",')}"a"]`) },
  { name: "a million [], and 7 MB of 0,", bytes: Buffer.from(`[${"[],".repeat(999_999)}${"0,".repeat(3_500_000)}0]`) },
  { name: "100,000 keys and 9 MB of 0,", bytes: Buffer.from(`[{${keysOf(100_000)}},${"0,".repeat(4_500_000)}0]`) },
];
const refused = [
  { name: "10 MB of [", bytes: filled("[") },
  { name: '10 MB of {"a":', bytes: filled('{"a":') },
  { name: "400,000 keys", bytes: Buffer.from(`{${keysOf(400_000)}}`) },
  { name: "10 MB of [],", bytes: Buffer.from(`[${filled("[],")}0]`) },
  { name: "10 MB of 0, without an end", bytes: Buffer.from(`[${filled("0,")}`) },
];
const rounds = 9;
const floods = 5;

const [, , part, url] = process.argv;
/** Each of the flood in a process of its own. */
const parts = { server: serve, bare: serveBare, flooder: flood, pinger: ping };
if (part in parts) await parts[part](url);
else {
  console.log(machine());
  if (part !== "flood") {
    const rows = [["CPU of one body, µs", "JSON.parse", "with bounds", "ratio"]];
    for (const { name, bytes, read = jsonOf } of [...accepted, ...dear, ...refused])
      rows.push([name, ...compare(bytes, read)]);
    console.log(`${table(rows)}\n`);
  }
  console.log(table([["/livez during 20 × 10 MB of [", "p50 ms", "p99 ms", "longest ms"], ...(await measureFloods())]));
}

/** Alternated rounds; those of a body that is refused end with its error. */
function compare(bytes, read) {
  const ways = [(body) => JSON.parse(body.toString("utf8")), (body) => read(body, limits)];
  const repeats = Math.max(1, Math.ceil(2_000_000 / bytes.length));
  const took = [[], []];
  for (let round = -3; round < rounds; round++)
    for (const way of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const before = process.cpuUsage();
      for (let i = 0; i < repeats; i++) {
        try {
          ways[way](bytes);
        } catch {
          // Refused, or not JSON.
        }
      }
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) took[way].push((user + system) / repeats);
    }
  const [floor, own] = took.map(median);
  return [floor.toFixed(1), own.toFixed(1), (own / floor).toFixed(2)];
}

async function serve() {
  const { createServer } = await import("../packages/sheaf-server/dist/index.js");
  const echo = { name: "echo", input: { kind: "json" }, output: { kind: "json" }, run: (items) => items };
  const server = await createServer({ models: [echo], settings: { port: 0, logLevel: "silent" } });
  process.send(await server.listen());
  process.on("disconnect", () => process.exit(0));
}

/** The floor: reads each body to its end, and does nothing with it. */
async function serveBare() {
  const server = createBareServer((request, response) => request.resume().on("end", () => response.end("{}")));
  await once(server.listen(0, "127.0.0.1"), "listening");
  process.send(`http://127.0.0.1:${server.address().port}`);
  process.on("disconnect", () => process.exit(0));
}

async function flood(to) {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: "[".repeat(1e7) };
  await Promise.allSettled(
    Array.from({ length: 20 }, () => fetch(`${to}/infer`, init).then((reply) => reply.arrayBuffer())),
  );
}

/** Every 10 ms, whether the one before was answered or not, until its parent says so. Sends how long each took. */
async function ping(to) {
  const took = [];
  const pings = [];
  const one = async () => {
    const sentAtMs = performance.now();
    await (await fetch(`${to}/livez`)).arrayBuffer();
    took.push(performance.now() - sentAtMs);
  };
  await one();
  process.send("ready");
  const over = once(process, "message").then(() => true);
  took.length = 0;
  while (!(await Promise.race([over, sleep(10)]))) pings.push(one());
  await Promise.all(pings);
  process.send(took);
  process.disconnect();
}

/** Medians of alternated rounds. */
async function measureFloods() {
  const kinds = ["bare", "server"];
  const found = { bare: [], server: [] };
  for (let round = 0; round < floods; round++)
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed()) found[kind].push(await flooded(kind));
  const row = (kind) => [0, 1, 2].map((i) => median(found[kind].map((quantiles) => quantiles[i])).toFixed(0));
  return [
    ["a server that only receives", ...row("bare")],
    ["Sheaf", ...row("server")],
  ];
}

async function flooded(kind) {
  const start = (...words) => fork(import.meta.filename, words);
  const server = start(kind);
  const [at] = await once(server, "message");
  const pinger = start("pinger", at);
  await once(pinger, "message");
  await once(start("flooder", at), "exit");
  pinger.send("over");
  const [took] = await once(pinger, "message");
  server.disconnect();
  took.sort((a, b) => a - b);
  const quantile = (share) => took[Math.min(took.length - 1, Math.floor(share * took.length))];
  return [quantile(0.5), quantile(0.99), took.at(-1)];
}
