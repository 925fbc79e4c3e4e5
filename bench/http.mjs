/**
 * What HTTP costs: `npm run bench -- http`. CPU microseconds of the server's process per request, by route and format,
 * beside the same from the result cache, and a bare node:http server that parses and serialises the same with JSON.parse and
 * JSON.stringify; then what a lone request takes beyond the run of the model. About two minutes. `-- http --no-lone` leaves
 * the last part out.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer, builtinModels, defaultSettings, workerModel } from "../packages/sheaf-server/dist/index.js";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { binaryTensorRequest } from "./lib/kserve-request.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const floats = Array.from({ length: 768 }, (_, i) => Math.fround(Math.cos(i + 1)));
const binary = binaryTensorRequest(Float32Array.from(floats));
const text = { model: "texts", input: "The cat sits outside" };
/** Each with the route of the bare server that does the same work. */
const formats = [
  { name: "/infer, 768 floats as JSON in and out", path: "/infer", body: JSON.stringify(floats) },
  { name: "/v1/embeddings, text in, 384 floats as JSON out", path: "/v1/embeddings", body: JSON.stringify(text) },
  {
    name: "/v1/embeddings, text in, 384 floats as base64 out",
    path: "/v1/embeddings",
    body: JSON.stringify({ ...text, encoding_format: "base64" }),
  },
  {
    name: "/v2 …/infer, 768 floats as bytes in and out (bare: as JSON)",
    path: "/v2/models/floats/infer",
    ...binary,
    bare: { path: "/infer", body: JSON.stringify(floats) },
  },
];
const rounds = 3;
const spanMs = 1500;

console.log(machine());
console.log("npm run bench -- http");
const kinds = ["sheaf", "cached", "bare"];
const servers = Object.fromEntries(await Promise.all(kinds.map(async (kind) => [kind, await start(kind)])));
const costs = formats.map(() => ({ sheaf: [], cached: [], bare: [] }));
for (let round = 0; round <= rounds; round++) {
  for (const [i, format] of formats.entries()) {
    for (const name of round % 2 === 0 ? kinds : kinds.toReversed()) {
      const shape = name === "bare" && format.bare !== undefined ? format.bare : format;
      const cost = await cpuPerRequest(servers[name], shape);
      if (round > 0) costs[i][name].push(cost); // The first warms up.
    }
  }
}
for (const { child } of Object.values(servers)) child.kill();
console.log(
  table([
    ["CPU µs a request (median of 3)", "sheaf", "from its cache", "bare node:http", "sheaf ÷ bare", "cache − bare"],
    ...formats.map(({ name }, i) => {
      const [ours, cached, bare] = kinds.map((kind) => median(costs[i][kind]));
      const figures = [ours, cached, bare].map((us) => us.toFixed(0));
      return [name, ...figures, (ours / bare).toFixed(2), (cached - bare).toFixed(0)];
    }),
  ]),
);
if (!process.argv.includes("--no-lone")) await loneRequests();

async function start(kind) {
  const child = fork(new URL("http-server.mjs", import.meta.url), [kind]);
  const [{ url }] = await once(child, "message");
  return { child, url };
}

async function cpuPerRequest({ child, url: origin }, { path, body, headers = {} }) {
  const url = new URL(path, origin);
  const head = { "content-type": "application/json", ...headers };
  const request = Buffer.isBuffer(body)
    ? Buffer.concat([renderRequest({ url, method: "POST", headers: { ...head, "content-length": String(body.length) } }), body])
    : renderRequest({ url, method: "POST", headers: head, body }); // prettier-ignore
  const target = httpTarget({ url, requests: [request] });
  const options = { configuration: path, target, clock: systemClock, pattern: "closed", callers: 32, seed: 1 };
  const before = await cpuOf(child);
  const { requests, ok, lastErrorBody } = await runLoad({ ...options, durationMs: spanMs });
  const cpuUs = (await cpuOf(child)) - before;
  target.close();
  if (ok < requests) throw new Error(`${requests - ok} of ${requests} requests failed: ${lastErrorBody}`);
  return cpuUs / requests;
}

async function cpuOf(child) {
  child.send("cpu");
  return (await once(child, "message"))[0].cpuUs;
}

/**
 * One request every 20 ms to `mlp` in its worker, against the run time that the worker measured; five rounds, each after
 * 2,000 requests back to back: a server that has run for seconds is compiled, one that has just started is not.
 */
async function loneRequests() {
  const added = [];
  for (let round = 0; round < 5; round++) {
    const server = await createServer({
      models: [workerModel(builtinModels.mlp(), defaultSettings)],
      settings: { port: 0, logLevel: "silent" },
    });
    const url = new URL("/infer", await server.listen());
    await server.ready();
    const request = renderRequest({ url, method: "POST", headers: {}, body: JSON.stringify(floats) });
    const target = httpTarget({ url, requests: [request], maxConnections: 1 });
    const times = [];
    const runs = [];
    const end = server.models.all[0].subscribe(({ runMs }) => runs.push(runMs));
    const send = () => new Promise((resolve) => void target.send(0, resolve));
    for (let i = 0; i < 2000; i++) await send();
    for (let i = 0; i < 100; i++) {
      await sleep(20);
      const startedAtMs = performance.now();
      await send();
      times.push(performance.now() - startedAtMs);
    }
    end();
    target.close();
    await server.close();
    added.push([median(times), median(runs.slice(-100))]);
  }
  const shown = added.map(([p50, runMs]) => `${p50.toFixed(2)} − ${runMs.toFixed(2)}`).join(", ");
  const addedMs = median(added.map(([p50, runMs]) => p50 - runMs));
  console.log(`A lone request to mlp, 768 floats in and out, p50 − run in ms: ${shown}`);
  console.log(`Added: ${addedMs.toFixed(2)} ms (median of 5 rounds; promised: at most 1.5)`);
}
