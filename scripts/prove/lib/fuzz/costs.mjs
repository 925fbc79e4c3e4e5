// What each route of routes.md and each method of grpc.md costs the server for each byte of its request.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { framed, goodMessage } from "./grpc-messages.mjs";

const root = new URL("../../../../", import.meta.url).pathname;
const documented = (file) => readFileSync(join(root, "docs/reference", file), "utf8");
const texts = (count, text = "a") => Array(count).fill(text);

const many = texts(2048);
const documents = { query: "a", documents: texts(999) };
const forms = { input_type: "classification", embedding_types: ["float", "base64"] };
/** Requests that succeed, up to those with the largest replies. */
const bodies = {
  "/infer/{model}": [{ inputs: texts(1000) }],
  "/v1/embeddings": [{ input: "a" }, { input: many }, { input: [" ".repeat(1e5), "💥".repeat(5e4), "ﷺ".repeat(1e5)] }],
  "/rerank": [documents, { query: "ﷺ".repeat(1e5), texts: texts(999) }],
  "/v1/rerank": [documents],
  "/v2/rerank": [documents],
  "/v1/embed": [{ texts: many, ...forms }],
  "/v2/embed": [{ texts: many, ...forms }],
  "/embed": [{ inputs: many }],
  "/api/embed": [{ model: "use-lite", input: many }],
  "/vectors": [{ text: "a" }],
  "/v2/models/{model}/infer": [{ inputs: [{ name: "text", datatype: "BYTES", shape: [1000], data: texts(1000) }] }],
};
/** What every POST gets: a wrong name, an open bracket again and again, many small values, what raises. */
const hostile = ["{}", `{"${"x".repeat(1e6)}":1}`, `{"model":"${"x".repeat(1e5)}"}`, "[".repeat(1e6), `[${"1,".repeat(5e5)}1]`, `{"input":${"9".repeat(1e6)}}`]; // prettier-ignore

function* httpCases() {
  for (const [, method, path] of documented("routes.md").matchAll(/^\| `(GET|POST) (\/[^`]*)`/gmu)) {
    const url = path.replace(/\{(?:model|id)\}/u, "use-lite").replace("{version}", "1");
    // It never ends.
    if (url === "/dashboard/events") continue;
    const own = (bodies[path] ?? []).map((body) => JSON.stringify(body));
    for (const body of method === "GET" ? [undefined] : [...own, ...hostile])
      for (const key of [undefined, "k"]) yield { method, url, body, key };
  }
  yield { method: "GET", url: `/${"x".repeat(4000)}`, key: undefined };
  for (const text of ["raise", `raise ${"x".repeat(1000)}`]) yield { method: "POST", url: "/infer/failing", body: JSON.stringify(text), key: "k" }; // prettier-ignore
}

function* grpcCases() {
  const service = "inference.GRPCInferenceService";
  for (const [, name] of documented("grpc.md").matchAll(/^\| `([A-Z]\w+)`/gmu))
    for (const [label, message] of [["empty", Buffer.alloc(0)], ["good", goodMessage(1)], ["long", Buffer.alloc(1e6, "\u002a\0")]])
      if (!/^[A-Z_]+$/u.test(name)) yield { path: `/${service}/${name}`, label, messages: [message] }; // prettier-ignore
  yield { path: "/grpc.health.v1.Health/Check", label: "empty", messages: [Buffer.alloc(0)], key: undefined };
  for (const version of ["v1", "v1alpha"])
    yield { path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`, label: "400 questions", messages: Array(400).fill(Buffer.from("\x22\x1einference.GRPCInferenceService")) }; // prettier-ignore
}

/** The four costs of some requests of a kind, one after the other. */
async function measured(server, name, bytes, times, send) {
  await send();
  const before = server.read();
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
  let replied = 0;
  let status;
  for (let i = 0; i < times; i++) {
    const reply = await send();
    replied += reply.bytes;
    ({ status } = reply);
  }
  const after = server.read();
  const sent = times * bytes;
  return {
    name: name.slice(0, 90),
    status,
    bytes,
    httpMs: (after.httpMs - before.httpMs) / times,
    "CPU µs/B": (1000 * (after.allMs - before.allMs)) / sent,
    "held B/B": Math.max(0, after.peakBytes - before.rssBytes) / sent,
    "reply B/B": replied / sent,
    "log B/B": (after.logBytes - before.logBytes) / sent,
  };
}

async function started() {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-costs-"));
  const model = `export default { run: (items) => items.map((item) => { if (String(item).startsWith("raise")) throw new Error(\`cannot take \${item}\`); return item; }) };`;
  writeFileSync(join(folder, "failing.mjs"), model);
  const sha256 = createHash("sha256").update("k").digest("hex");
  writeFileSync(join(folder, "keys.json"), JSON.stringify({ keys: [{ name: "one", sha256, operator: true }] }));
  const env = { ...process.env, PORT: "0", GRPC_PORT: "0", API_KEYS_FILE: join(folder, "keys.json") };
  const words = [join(root, "packages/sheaf-server/bin/sheaf.js"), "serve", "use-lite", join(folder, "failing.mjs")];
  const child = spawn(process.execPath, words, { env, stdio: ["ignore", "pipe", "inherit"] });
  let logBytes = 0;
  const found = {};
  const ready = new Promise((resolve) => {
    createInterface(child.stdout).on("line", (line) => {
      logBytes += line.length + 1;
      found.grpc ??= /gRPC listening on ([\d.:]+)/u.exec(line)?.[1];
      found.url ??= /(http:\/\/[\d.:]+)/u.exec(line)?.[1];
      if (found.grpc && found.url) resolve();
    });
  });
  await Promise.race([ready, once(child, "exit").then(() => Promise.reject(new Error("the server ended")))]);
  while (!(await fetch(`${found.url}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 100));
  const { pid } = child;
  const ms = (task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const status = (key) => 1024 * Number(new RegExp(`${key}:\\s+(\\d+)`, "u").exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]); // prettier-ignore
  const read = () => ({
    httpMs: ms(pid),
    allMs: readdirSync(`/proc/${pid}/task`).reduce((sum, task) => sum + ms(task), 0),
    rssBytes: status("VmRSS"),
    peakBytes: status("VmHWM"),
    logBytes,
  });
  const end = async () => {
    child.kill();
    await once(child, "exit");
    rmSync(folder, { recursive: true });
  };
  return { ...found, pid, read, end };
}

/** Walks all routes and methods. @returns a row each, with its costs. @throws {Error} at a 5xx that no model raised */
export async function walkCosts() {
  const server = await started();
  const rows = [];
  for (const { method, url, body, key } of httpCases()) {
    const headers = {
      ...(body && { "content-type": "application/json" }),
      ...(key && { authorization: `Bearer ${key}` }),
    };
    const send = async () => {
      const response = await fetch(server.url + url, { method, headers, body });
      const { length: bytes } = Buffer.from(await response.arrayBuffer());
      if (response.status >= 500 && !/raise/u.test(body)) throw new Error(`${method} ${url}: ${response.status}`);
      return { status: response.status, bytes };
    };
    const bytes = url.length + 150 + Buffer.byteLength(body ?? "");
    const name = `${method} ${url.slice(0, 40)}${key ? "" : " (no key)"} ${(body ?? "").slice(0, 30)}`;
    rows.push(await measured(server, name, bytes, bytes > 1000 ? 3 : 50, send));
  }
  const session = connect(`http://${server.grpc}`);
  for (const { path, label, messages, ...rest } of grpcCases()) {
    const head = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    const headers = "key" in rest ? head : { ...head, authorization: "Bearer k" };
    const send = () =>
      new Promise((resolve) => {
        const stream = session.request(headers);
        let [bytes, status] = [0, "reset"];
        for (const event of ["response", "trailers"])
          stream.on(event, (sent) => (status = sent["grpc-status"] ?? status));
        stream.on("data", (reply) => (bytes += reply.length)).on("error", () => undefined);
        stream.once("close", () => resolve({ status: `grpc ${status}`, bytes }));
        stream.end(Buffer.concat(messages.map(framed)));
      });
    const bytes = messages.reduce((sum, { length }) => sum + length + 14, path.length + 150);
    rows.push(await measured(server, `${path} ${label}`, bytes, bytes > 1000 ? 3 : 50, send));
  }
  session.close();
  await server.end();
  return rows;
}
