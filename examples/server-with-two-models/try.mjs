// Starts the server of this folder (`sheaf serve` reads sheaf.config.json), asks both models, and stops it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const server = spawn("sheaf", ["serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(server, "exit");
try {
  const url = await ready();
  const [embeddings, sentiment, models] = await Promise.all([
    ask(`${url}/v1/embeddings`, { model: "use-lite", input: "The cat sits outside" }),
    ask(`${url}/infer/sentiment`, { inputs: ["I love it", "what an awful day", "it is Tuesday"] }),
    fetch(`${url}/v1/models`).then((reply) => reply.json()),
  ]);
  assert.equal(embeddings.data[0].embedding.length, 512);
  assert.deepEqual(
    sentiment.outputs.map(({ label }) => label),
    ["positive", "negative", "neutral"],
  );
  console.log(`served ${models.data.map(({ id }) => id).join(" and ")}; sentiment:`, sentiment.outputs);
} finally {
  server.kill("SIGTERM");
}
assert.deepEqual(await ended, [0, null]);

/** Resolves with the server's URL once every model is warm. */
async function ready() {
  let url;
  for await (const line of createInterface({ input: server.stdout })) {
    url ??= /listening on (http:\/\/[^"]+)/.exec(line)?.[1];
    if (line.includes('"msg":"ready"')) return url;
  }
  throw new Error("the server ended before it was ready");
}

async function ask(url, body) {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await reply.json();
  assert.equal(reply.status, 200, answer.detail);
  return answer;
}
