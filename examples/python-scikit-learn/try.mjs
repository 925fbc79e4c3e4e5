// Starts the server of this folder as `npm start` does, asks it, and stops it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const server = spawn("sheaf", ["serve", "model.py", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(server, "exit");
try {
  const url = await ready();
  // A one, as 8 x 8 shades from 0 to 16.
  const one = [
    [0, 0, 1, 12, 14, 1, 0, 0],
    [0, 0, 5, 16, 16, 2, 0, 0],
    [0, 0, 9, 16, 16, 0, 0, 0],
    [0, 1, 15, 16, 14, 0, 0, 0],
    [0, 0, 6, 16, 14, 0, 0, 0],
    [0, 0, 2, 16, 15, 0, 0, 0],
    [0, 0, 2, 16, 16, 2, 0, 0],
    [0, 0, 1, 12, 16, 5, 0, 0],
  ];
  const { output } = await ask(`${url}/infer`, { input: one.flat() });
  assert.equal(output.digit, 1);
  const { data } = await (await fetch(`${url}/v1/models`)).json();
  assert.equal(data[0].self_test, "independent");
  console.log(output);
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
