/**
 * `npm run prove -- callers [most]`: 1 to 10,000 callers at once, each with a connection and an item of its own, on `sheaf
 * serve` in another process. Every caller must get its own result. Then the same with 64 MiB of heap, which is too little for
 * 10,000 connections: MAX_CONNECTIONS 1000 must turn away the rest, and the server live on.
 */
import { machine, median, table } from "../bench/lib/machine.mjs";
import { ChaosConnection } from "./lib/chaos/connection.mjs";
import { Served } from "./lib/chaos/served.mjs";

const most = Number(process.argv[2] ?? 10_000);
if (!Number.isInteger(most) || most < 1) {
  console.error(`The most callers must be an integer >= 1, got ${process.argv[2]}`);
  process.exit(2);
}
const hungAfterMs = 60_000;
console.log(`${machine()}\nnpm run prove -- callers ${most}\n`);
const rows = [["heap", "MAX_CONNECTIONS", "callers", "own result", "turned away", "wrong", "twice", "hung", "p50 ms", "last ms", "resident MiB"]]; // prettier-ignore
let isKept = true;
for (const [heap, maxConnections, more] of [
  ["default", 20_000, {}],
  ["64 MiB", 1000, { NODE_OPTIONS: "--max-old-space-size=64" }],
]) {
  const server = new Served("thread", {
    QUEUE_MAX_SIZE: "20000",
    REQUEST_TIMEOUT_MS: "60000",
    MAX_CONNECTIONS: `${Number(maxConnections)}`,
    ...more,
  });
  await server.start();
  for (let callers = 1; callers <= most && server.crash === undefined; callers *= 10) {
    const { own, closed, wrong, twice, hung, latenciesMs } = await atOnce(server, callers);
    const isRight =
      own >= Math.min(callers, 0.9 * maxConnections) && closed <= Math.max(0, callers - 0.9 * maxConnections);
    isKept &&= isRight && own + closed === callers && wrong + twice + hung === 0 && server.crash === undefined;
    if (server.crash !== undefined) console.error(server.crash);
    const last = latenciesMs.reduce((longest, ms) => Math.max(longest, ms), 0);
    const residentMib = server.crash === undefined ? server.resources().residentMib : NaN;
    rows.push([heap, maxConnections, callers, own, closed, wrong, twice, hung, median(latenciesMs).toFixed(1), last.toFixed(1), residentMib.toFixed(0)]); // prettier-ignore
  }
  await server.close();
}
console.log(table(rows));
if (!isKept) console.error("A caller did not get its own result.");
process.exit(isKept ? 0 : 1);

async function atOnce(server, callers) {
  const counts = { own: 0, closed: 0, wrong: 0, twice: 0, hung: 0 };
  const connections = Array.from({ length: callers }, () => new ChaosConnection(server.port, () => counts.twice++));
  await Promise.all(connections.map((connection) => connection.opened));
  const latenciesMs = [];
  const ask = async (connection, number) => {
    const body = JSON.stringify({ input: { id: `k${number}`, number } });
    const head = `POST /infer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const startedAtMs = performance.now();
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, hungAfterMs, "hung")));
    const answer = await Promise.race([connection.request([head + body], 0), late]);
    clearTimeout(timer);
    if (answer === "hung") counts.hung++;
    else if (answer === undefined) counts.closed++;
    else if (answer.status === 200 && JSON.parse(answer.body).output.number === 2 * number) {
      counts.own++;
      latenciesMs.push(performance.now() - startedAtMs);
    } else counts.wrong++;
  };
  await Promise.all(connections.map(ask));
  for (const connection of connections) connection.destroy();
  return { ...counts, latenciesMs };
}
