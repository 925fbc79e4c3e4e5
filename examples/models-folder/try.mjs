// Serves the folder, puts a new version into it while requests go on, and has the server load it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const environment = { ...process.env, API_KEY: "secret" };
const server = spawn("sheaf", ["serve", "models", "--port", "0"], {
  stdio: ["ignore", "pipe", "inherit"],
  env: environment,
});
const ended = once(server, "exit");
const answers = [];
try {
  const url = await ready();
  const ask = async (path, body) => {
    const headers = { "content-type": "application/json", authorization: "Bearer secret" };
    const reply = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await reply.json();
    assert.equal(reply.status, 200, answer.detail ?? answer.error);
    return answer;
  };
  let isOver = false;
  const caller = async () => {
    while (!isOver) answers.push((await ask("/infer/greeter", { input: "Ada" })).output);
  };
  const callers = [caller(), caller(), caller()];
  while (answers.length < 10) await sleep(10);

  while (answers.length < 10) await sleep(10);

  cpSync("next", "models/greeter/2", { recursive: true });
  await ask("/v2/repository/models/greeter/load", {});
  assert.equal((await ask("/infer/greeter", { input: "Grace" })).output, "Good morning, Grace.");
  isOver = true;
  await Promise.all(callers);
} finally {
  rmSync("models/greeter/2", { recursive: true, force: true });
  server.kill("SIGTERM");
}
assert.deepEqual(await ended, [0, null]);
const old = answers.filter((answer) => answer === "Hello, Ada!").length;
assert.ok(old > 0);
assert.ok(answers.every((answer) => ["Hello, Ada!", "Good morning, Ada."].includes(answer)));
console.log(`${answers.length} requests, none lost: version 1 answered ${old}, then version 2 took over`);

/** Resolves with the server's URL once the model is warm. */
async function ready() {
  let url;
  for await (const line of createInterface({ input: server.stdout })) {
    url ??= /listening on (http:\/\/[^"]+)/.exec(line)?.[1];
    if (line.includes('"msg":"ready"')) return url;
  }
  throw new Error("the server ended before it was ready");
}
