import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { temporaryFolder } from "../folder.js";
import { listening, ready, sheaf } from "./sheaf-process.js";

const folder = temporaryFolder({ after });

/** A worker module that loads once `gate` is there, as its content says: "throw …" fails. */
function slowModule(name: string): { readonly path: string; readonly gate: string } {
  const path = join(folder, `${name}.mjs`);
  const gate = join(folder, `${name}-gate`);
  writeFileSync(
    path,
    `import { existsSync, readFileSync } from "node:fs";
    export const sample = "a";
    export default {
      load: async () => {
        while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5));
        const failure = readFileSync(${JSON.stringify(gate)}, "utf8");
        if (failure !== "") throw new Error(failure);
      },
      run: (items) => items,
    };`,
  );
  return { path, gate };
}

test("/livez answers at once while a model is loaded; the rest says 503 and when to come back", async (t) => {
  const { path, gate } = slowModule("slow");
  const served = sheaf(t, ["serve", path, "--port", "0"]);
  const url = await listening(served);
  // One connection for all: those that are open stay so when the server has its routes.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ask = (way: string, body?: unknown): Promise<Answer> => askOn(agent, url, way, body);

  assert.deepEqual(await ask("/livez"), { status: 200, retryAfter: undefined, json: { status: "ok" } });
  assert.deepEqual((await ask("/v2/health/live")).json, { live: true });
  const models = [{ name: "slow", state: "loading", reason: "waits for slow.mjs" }];
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

  writeFileSync(gate, "");
  await ready(served);
  assert.equal((await ask("/infer", { input: "the cat" })).json.output, "the cat");
  assert.equal((await ask("/readyz")).status, 200);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

test("a model that turns out to be broken ends the server with 1 and the reason, even with clients connected", async (t) => {
  const { path, gate } = slowModule("broken");
  const served = sheaf(t, ["serve", path, "--port", "0"]);
  const url = await listening(served);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  assert.equal((await askOn(agent, url, "/livez")).status, 200);
  writeFileSync(gate, "no weights");
  assert.equal(await served.ended, 1);
  assert.match(served.output.stderr, /broken cannot be served: .*no weights/);
});

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
