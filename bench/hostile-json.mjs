/**
 * What the bounds of JSON cost, beside JSON.parse of the same bytes, for bodies that are accepted and refused; then /livez while
 * twenty bodies of 10 MB of `[` arrive from another process: `npm run bench -- hostile-json`. About a minute.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
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
  { name: "10,000 arrays of 3 floats", value: { input: Array.from({ length: 10_000 }, () => floats(3)) } },
  { name: "1 MB of floats, as JSON items", value: { input: floats(50_000) }, read: exactJsonOf },
  { name: "a record, as a JSON item", value: { input: record(0, 0) }, read: exactJsonOf },
  { name: "20,000 records, as JSON items", value: Array.from({ length: 20_000 }, record), read: exactJsonOf },
].map((body) => ({ ...body, bytes: Buffer.from(JSON.stringify(body.value)) }));
const keys = Array.from({ length: 400_000 }, (_, i) => `"k${i}":${i}`).join();
const refused = [
  { name: "10 MB of [", bytes: filled("[") },
  { name: '10 MB of {"a":', bytes: filled('{"a":') },
  { name: "400,000 keys", bytes: Buffer.from(`{${keys}}`) },
  { name: "10 MB of [],", bytes: Buffer.from(`[${filled("[],")}0]`) },
  { name: "10 MB of 0, without an end", bytes: Buffer.from(`[${filled("0,")}`) },
];
const rounds = 9;

if (process.argv[2] === "server") await serve();
else {
  console.log(machine());
  const rows = [["CPU of one body, µs", "JSON.parse", "with bounds", "ratio"]];
  for (const { name, bytes, read = jsonOf } of [...accepted, ...refused]) rows.push([name, ...compare(bytes, read)]);
  console.log(table(rows));
  console.log(
    `\n${table([
      ["/livez during 20 × 10 MB of [", "p50 ms", "p99 ms", "longest ms"],
      ["", ...(await flood())],
    ])}`,
  );
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

/** This process pings every 10 ms; one floods, one serves. */
async function flood() {
  const server = fork(import.meta.filename, ["server"]);
  const [url] = await once(server, "message");
  const source = `const body = "[".repeat(1e7), headers = { "content-type": "application/json" };
    await Promise.allSettled(Array.from({ length: 20 }, () => fetch("${url}/infer", { method: "POST", headers, body }).then((reply) => reply.text())));`;
  const flooder = fork("-", { execArgv: ["--input-type=module", "-e", source] });
  const took = [];
  const pings = [];
  const ping = async () => {
    const sentAtMs = performance.now();
    await (await fetch(`${url}/livez`)).arrayBuffer();
    took.push(performance.now() - sentAtMs);
  };
  for (const ended = once(flooder, "exit").then(() => true); !(await Promise.race([ended, sleep(10)]));)
    pings.push(ping());
  await Promise.all(pings);
  server.disconnect();
  took.sort((a, b) => a - b);
  const quantile = (share) => took[Math.min(took.length - 1, Math.floor(share * took.length))].toFixed(0);
  return [quantile(0.5), quantile(0.99), took.at(-1).toFixed(0)];
}
