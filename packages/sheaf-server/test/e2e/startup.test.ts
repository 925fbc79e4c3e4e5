import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync, unlinkSync } from "node:fs";
import { open, readFile, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { folderOf, tinyBert, width } from "../runners/made-folders.js";
import { folder } from "../runners/made-models.js";
import { ready, sheaf, type SheafProcess } from "./sheaf-process.js";

after(() => rmSync(folder, { recursive: true, force: true }));

const config = { architectures: ["BertModel"], hidden_size: width, max_position_embeddings: 16, pad_token_id: 0 };

/** A folder whose tokenizer is a pipe: a reader waits until the test writes. */
async function slowFolder(name: string): Promise<{ path: string; pipe: string; tokenizer: string }> {
  const path = folderOf(name, { "model.onnx": tinyBert(), "config.json": config });
  const pipe = join(path, "tokenizer.json");
  const tokenizer = await readFile(pipe, "utf8");
  unlinkSync(pipe);
  execFileSync("mkfifo", [pipe]);
  return { path, pipe, tokenizer };
}

test("/livez answers at once while a model is loaded; the rest says 503 and when to come back", async (t) => {
  const { path, pipe, tokenizer } = await slowFolder("slow");
  const served = sheaf(t, ["serve", path, "--port", "0"]);
  const url = await listening(served);
  // One connection for all: those that are open stay so when the server has its routes.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ask = (way: string, body?: unknown): Promise<Answer> => askOn(agent, url, way, body);

  assert.deepEqual(await ask("/livez"), { status: 200, retryAfter: undefined, json: { status: "ok" } });
  assert.deepEqual((await ask("/v2/health/live")).json, { live: true });
  const models = [{ name: "slow", state: "loading", reason: "waits for slow" }];
  while ((await ask("/readyz")).json.models[0].reason === undefined)
    await new Promise((resolve) => setTimeout(resolve, 20));
  for (const way of ["/readyz", "/health"])
    assert.deepEqual(await ask(way), { status: 503, retryAfter: "1", json: { status: "warming", models } });
  assert.deepEqual(await ask("/v2/health/ready"), { status: 503, retryAfter: "1", json: { ready: false } });
  const refused = await ask("/infer", { input: "the cat" });
  assert.deepEqual([refused.status, refused.retryAfter, refused.json.error.code], [503, "1", "NOT_READY"]);
  assert.match(refused.json.detail, /slow is still loading; see \/readyz/);
  const protocol = await ask("/v2/models/slow/infer", { inputs: [] });
  assert.deepEqual([protocol.status, typeof protocol.json.error], [503, "string"]);

  // Who looks into it has opened the pipe; who serves it finds a file.
  const writing = await open(pipe, "w");
  unlinkSync(pipe);
  await writeFile(pipe, tokenizer);
  await writing.writeFile(tokenizer);
  await writing.close();
  await ready(served);
  assert.equal((await ask("/infer", { input: "the cat" })).json.output.length, width);
  assert.equal((await ask("/readyz")).status, 200);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

test("a model that turns out to be broken ends the server with 1 and the reason, even with clients connected", async (t) => {
  const { path, pipe } = await slowFolder("broken");
  const served = sheaf(t, ["serve", path, "--port", "0"]);
  const url = await listening(served);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  assert.equal((await askOn(agent, url, "/livez")).status, 200);
  await writeFile(pipe, "{");
  assert.equal(await served.ended, 1);
  assert.match(served.output.stderr, /broken cannot be served: .*tokenizer\.json is not JSON: /);
});

async function listening(served: SheafProcess): Promise<string> {
  for (;;) {
    const url = /listening on (http:\/\/[^"]+)/.exec(served.output.stdout)?.[1];
    if (url !== undefined) return url;
    assert.equal(served.child.exitCode, null, served.output.stderr);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

interface Answer {
  readonly status: number | undefined;
  readonly retryAfter: string | undefined;
  readonly json: any;
}

function askOn(agent: Agent, url: string, way: string, body?: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = {
      agent,
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json" },
    };
    const sent = request(url + way, options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const { statusCode: status, headers } = response;
        assert.equal(headers["content-length"], String(Buffer.byteLength(text)));
        resolve({ status, retryAfter: headers["retry-after"], json: JSON.parse(text) });
      });
    });
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}
