// Starts the server of this folder as `npm start` does, asks it, and stops it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const server = spawn("sheaf", ["serve", "model.py", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(server, "exit");
try {
  const url = await ready();
  const { outputs } = await ask(`${url}/infer`, {
    inputs: ["The cat is on the mat", "Der Hund und die Katze", "Le chat est sur la table", "…"],
  });
  assert.deepEqual(
    outputs.map(({ language, error }) => language ?? error.code),
    ["English", "German", "French", "INVALID_INPUT"],
  );
  console.log(outputs);
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
