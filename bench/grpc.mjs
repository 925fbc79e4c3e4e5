/**
 * `npm run bench -- grpc [--rounds 3] [--requests 5000]`: what a request to mlp costs the server over gRPC (single calls, and
 * one stream) and over HTTP with binary tensors: CPU seconds of all its threads for 1,000 requests, 64 callers at once. The
 * three take turns in one run. Under half a minute; Linux only.
 */
import { request as post, Agent } from "node:http";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { binaryTensorRequest } from "./lib/kserve-request.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { addCpu, cpuByThread } from "./lib/thread-cpu.mjs";

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, requests: { type: "string", default: "5000" } },
});
const [rounds, requests] = [Number(flags.rounds), Number(flags.requests)];
const callers = 64;
const packageFile = new URL("../packages/sheaf-server/package.json", import.meta.url);
const { Client, credentials } = createRequire(packageFile)("@grpc/grpc-js");
const { service } = await import("../packages/sheaf-server/dist/server/protocols/grpc/definition.js");
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const item = Float32Array.from({ length: 768 }, (_, i) => Math.sin(i));

const grpcPort = await freePort();
const served = await serveModel({ entry, model: "mlp", flags: ["--grpc-port", String(grpcPort)] });
const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
const agent = new Agent({ keepAlive: true, maxSockets: callers });
const message = {
  model_name: "mlp",
  inputs: [{ name: "input", datatype: "FP32", shape: [1, 768] }],
  raw_input_contents: [Buffer.from(item.buffer)],
};
const ways = {
  "HTTP, binary tensors": each(overHttp),
  "gRPC, single calls": each(overGrpc),
  "gRPC, one stream": inAStream,
};
const costs = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
try {
  for (const run of Object.values(ways)) await run(1000);
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of Object.entries(ways)) {
      const used = new Map();
      const before = cpuByThread(served.pid);
      await run(requests);
      addCpu(used, served.pid, before);
      costs[name].push([...used.values()].reduce((sum, ms) => sum + ms, 0) / requests);
    }
  }
} finally {
  client.close();
  agent.destroy();
  await served.stop();
}

console.log(machine());
console.log(
  `npm run bench -- grpc --rounds ${rounds} --requests ${requests} (load average: ${loadavg()[0].toFixed(1)}); medians\n`,
);
const [http] = Object.values(costs);
console.log(
  table([
    ["way", "CPU s for 1,000 requests", "of HTTP's"],
    ...Object.entries(costs).map(([name, ms]) => [
      name,
      median(ms).toFixed(3),
      median(ms.map((one, i) => one / http[i])).toFixed(2),
    ]),
  ]),
);

/** Callers that each wait for their reply before they send the next. */
function each(ask) {
  return async (count) => {
    let left = count;
    const caller = async () => {
      while (left-- > 0) await ask();
    };
    await Promise.all(Array.from({ length: callers }, caller));
  };
}

function overHttp() {
  const { body, headers } = binaryTensorRequest(item);
  const options = { method: "POST", agent, headers: { ...headers, "content-length": body.length } };
  return new Promise((resolve, reject) => {
    post(`${served.origin}/v2/models/mlp/infer`, options, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      response.resume().once("end", resolve);
    }).once("error", reject).end(body);
  });
} // prettier-ignore

function overGrpc() {
  const { path, requestSerialize, responseDeserialize } = service.ModelInfer;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (error) => (error === null ? resolve() : reject(error)));
  });
} // prettier-ignore

function inAStream(count) {
  const { path, requestSerialize, responseDeserialize } = service.ModelStreamInfer;
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  let [sent, received] = [0, 0];
  const send = () => (sent++ < count ? stream.write(message) : undefined);
  return new Promise((resolve, reject) => {
    stream.on("error", reject).on("end", resolve).on("data", ({ error_message: error }) => {
      if (error !== "") reject(new Error(error));
      if (++received === count) stream.end();
      else send();
    });
    for (let i = 0; i < callers; i++) send();
  });
} // prettier-ignore

async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}
