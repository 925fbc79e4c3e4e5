import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { root } from "../../../lib/files.mjs";
import { compileSnippets, complaintOnRun, snippets } from "../../../lib/snippets.mjs";
import { userEnvironment } from "../../../lib/tarballs.mjs";
import { freePort, until } from "../../../../test/support/serving.mjs";

/** The README's TypeScript that says what it prints, compiled here against the build. */
export function readmeCode() {
  const blocks = snippets([join(root, "README.md")]).filter(({ words }) => words.includes("run"));
  const { ok, messages, files } = compileSnippets(blocks, join(root, "artifacts/release-proof"));
  assert.ok(ok, messages);
  return blocks.map((block, index) => ({ block, file: files[index] }));
}

/** The server inside a program of the user's own: starts, answers a request and closes. */
const embedded = `
import { createServer } from "sheaf-server";
const model = {
  name: "lengths",
  input: { kind: "text", maxTokens: 128 },
  output: { kind: "vector", length: 1 },
  run: (texts) => texts.map((text) => Float32Array.of(text.length)),
};
const server = await createServer({ models: [model], settings: { port: 0, logLevel: "silent" } });
const url = await server.listen();
await server.ready();
const headers = { "content-type": "application/json" };
const reply = await fetch(url + "/infer", { method: "POST", headers, body: '"three"' });
console.log((await reply.json()).output.join());
await server.close();
`;

/**
 * Uses what a project has installed as its user would: runs the README's code, embeds the server, and serves until the
 * first vector is there. Returns how many seconds that took from the start of the command.
 */
export async function use(project, code, { node, sheaf }) {
  for (const { block, file } of code) {
    const copy = join(project, "readme.js");
    copyFileSync(file, copy);
    const complaint = complaintOnRun(block, copy, node);
    if (complaint !== undefined) throw new Error(complaint);
  }
  const script = join(project, "embedded.js");
  writeFileSync(script, embedded);
  const [command, ...parameters] = [...node, script];
  const options = { cwd: project, env: userEnvironment(), encoding: "utf8", timeout: 60_000 };
  assert.equal(execFileSync(command, parameters, options).trim(), "5");
  return firstVector(project, sheaf, node);
}

async function firstVector(project, [command, ...parameters], [node]) {
  const port = await freePort();
  // The command's first line asks for the `node` of the PATH.
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`;
  const startedAtMs = performance.now();
  const server = spawn(command, [...parameters, "serve"], {
    cwd: project,
    env: { ...userEnvironment(), PATH, PORT: String(port) },
    // A group of its own: a package manager does not pass a signal on to what it runs.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [server.stdout, server.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  const exited = new Promise((resolve) => server.once("close", (code, signal) => resolve(code ?? signal)));
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(async () => (await fetch(`${url}/readyz`)).ok, exited, 120);
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ model: "use-lite", input: "The cat sits outside" });
    const reply = await fetch(`${url}/v1/embeddings`, { method: "POST", headers, body });
    const { data } = await reply.json();
    assert.equal(data[0].embedding.length, 512);
    return (performance.now() - startedAtMs) / 1000;
  } catch (error) {
    throw new Error(`${error.message}\n${log}`, { cause: error });
  } finally {
    end(server, "SIGTERM");
    const late = setTimeout(() => end(server, "SIGKILL"), 30_000);
    await exited;
    clearTimeout(late);
  }
}

function end({ pid }, signal) {
  try {
    process.kill(0 - pid, signal);
  } catch {
    // It has ended.
  }
}
