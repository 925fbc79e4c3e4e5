// openai's clients with the retries that they make by default, against a server whose queue is full: a 429 says when to
// come back, and they do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createServer } from "../../packages/sheaf-server/dist/index.js";
import { runProgram, runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { untilTrue } from "./lib/until.mjs";

const given = { model: "number", texts: ["2", "3", "5", "7"], many: [] };

const clients = {
  "openai for JavaScript": { run: (url) => runProgram([process.execPath, "openai-retry.mjs", url], given) },
  "openai for Python": { run: (url) => runPython("openai_retry_client.py", [url], given), skip: skipWithoutPython },
};

for (const [name, { run, skip = false }] of Object.entries(clients))
  test(`${name}: a text that finds the queue full is sent again, and gets its result`, { skip }, async (t) => {
    const { url, refused, open } = await fullAfterThree(t);
    const client = run(`${url}/v1`);
    // One text runs and two wait: the fourth is refused. Nothing runs before that is seen.
    await Promise.race([untilTrue(async () => (await refused()) > 0), client]);
    open();
    const { version, replies } = await client;
    t.diagnostic(`version ${version}; ${await refused()} refused`);
    assert.deepEqual(replies[0], given.texts.map((text) => [Number(text), Number(text) ** 2])); // prettier-ignore
    assert.ok((await refused()) > 0);
  });

const vectorOf = (text) => Float32Array.of(Number(text), Number(text) ** 2);
const numbers = { name: "number", input: { kind: "text" }, output: { kind: "vector", length: 2 } };

/** A server with one item a batch and room for two more, whose model runs nothing until `open()`. */
async function fullAfterThree(t) {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  const number = {
    ...numbers,
    run: async (texts) => {
      await opened;
      return texts.map(vectorOf);
    },
  };
  const settings = { port: 0, logLevel: "silent", maxBatchSize: 1, queueMaxSize: 2, requestTimeoutMs: 120_000 };
  const server = await createServer({ models: [number], settings: { ...settings, warmupBatches: 0 } });
  t.after(() => {
    open();
    return server.close();
  });
  const url = await server.listen();
  await server.ready();
  const refused = async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(/sheaf_requests_total\{route="\/v1\/embeddings",status="429"\} (\d+)/.exec(metrics)?.[1] ?? 0);
  };
  return { url, refused, open };
}
