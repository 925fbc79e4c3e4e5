// Starts the server of this folder as `npm start` does, asks it, and stops it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const server = spawn("sheaf", ["serve", "model.py", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(server, "exit");
try {
  const url = await ready();
  const image = (shade) => Array.from({ length: 3 }, () => Array.from({ length: 32 }, () => new Array(32).fill(shade)));
  const { outputs } = await ask(`${url}/infer`, { inputs: [image(0), image(0.5), image(1)] });
  for (const shares of outputs) {
    assert.equal(shares.length, 10);
    assert.ok(Math.abs(shares.reduce((sum, share) => sum + share) - 1) < 1e-5);
  }
  const { data } = await (await fetch(`${url}/v1/models`)).json();
  assert.equal(data[0].self_test, "independent");
  console.log(outputs[0]);
} finally {
  server.kill("SIGTERM");
}
assert.deepEqual(await ended, [0, null]);

/** Resolves with the server's URL once the model is warm. */
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
