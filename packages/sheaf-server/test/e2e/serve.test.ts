import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import OpenAI from "openai";
import { get, post } from "../asking.js";
import { ready, sheaf } from "./sheaf-process.js";
import { temporaryFolder } from "../folder.js";
import { statusesOfUnread } from "./unread.js";

const words = "cat dog river stone music window train winter coffee garden letter moon".split(" ");
/** Text number i: 3 to 8 words, no two alike. */
const textOf = (i: number): string =>
  Array.from({ length: 3 + (i % 6) }, (_, k) => words[(i * 5 + k * 7) % words.length]).join(" ") + ` ${i}`;

async function embed(url: string, input: string): Promise<{ status: number; vector?: number[]; json: any }> {
  const { status, json } = await post(`${url}/v1/embeddings`, { model: "use-lite", input });
  return { status, vector: json.data?.[0].embedding, json };
}

async function metric(url: string, name: string): Promise<number> {
  const { text } = await get(`${url}/metrics`);
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

const largestDifference = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

test("use-lite serves 200 texts at once in far fewer runs, each with the vector it has alone", async (t) => {
  const served = sheaf(t, ["serve"], { PORT: "0" });
  const url = await ready(served);
  const texts = Array.from({ length: 200 }, (_, i) => textOf(i));

  const runsBefore = await metric(url, "sheaf_batches_total");
  const together = await Promise.all(texts.map((text) => embed(url, text)));
  const runs = (await metric(url, "sheaf_batches_total")) - runsBefore;
  assert.ok(runs < 100, `${runs} runs for 200 texts`);
  t.diagnostic(`200 texts ran in ${runs} batches`);

  for (const [i, text] of texts.entries()) {
    const alone = await embed(url, text);
    assert.equal(alone.vector!.length, 512);
    assert.ok(Math.abs(Math.hypot(...alone.vector!) - 1) < 1e-5);
    const difference = largestDifference(alone.vector!, together[i]!.vector!);
    assert.ok(difference < 1e-6, `"${text}" differs by ${difference} in a batch`);
  }

  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const { data } = await client.embeddings.create({ model: "use-lite", input: texts.slice(0, 2) });
  assert.ok(largestDifference(Array.from(data[1]!.embedding), together[1]!.vector!) < 1e-6);

  assert.equal((await embed(url, "")).status, 422);
  assert.equal((await embed(url, "x".repeat(1_000_000))).status, 422);
  assert.equal((await embed(url, " ")).status, 200, "a blank text is still a text");
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

for (const signal of ["SIGHUP", "SIGQUIT"] as const)
  test(`${signal} drains as SIGTERM does: what is in flight is answered, and the exit code is 0`, async (t) => {
    const served = sheaf(t, ["serve", "mlp", "--port", "0", "--max-batch-size", "1"]);
    const url = await ready(served);
    const reply = post(`${url}/infer`, { inputs: Array.from({ length: 300 }, () => new Array(768).fill(0.5)) });
    while ((await metric(url, "sheaf_queue_items")) === 0);
    served.child.kill(signal);
    assert.equal((await reply).json.outputs.length, 300);
    assert.equal(await served.ended, 0);
  });

test("what the grace period cuts off gets 503, and the exit code is 1", async (t) => {
  const served = sheaf(t, ["serve", "mlp", "--port", "0", "--max-batch-size", "1", "--shutdown-grace-ms", "0"]);
  const url = await ready(served);
  const reply = post(`${url}/infer`, { inputs: Array.from({ length: 900 }, () => new Array(768).fill(0.5)) });
  while ((await metric(url, "sheaf_queue_items")) === 0);
  served.child.kill("SIGTERM");
  assert.ok((await reply).json.outputs.some((output: any) => output.error?.code === "CLOSED"));
  assert.equal(await served.ended, 1);
});

test("what was sent before SIGTERM is answered, also if the server had not read it yet", async (t) => {
  const served = sheaf(t, ["serve", "mlp", "--port", "0", "--warmup-batches", "0"]);
  const statuses = await statusesOfUnread(t, served, "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n");
  assert.deepEqual(
    [...statuses].filter((status) => status !== 200 && status !== 503),
    [],
  );
  assert.equal(await served.ended, 0);
});

test("a second signal ends with 1 at once, however much waits, and without an abort", async (t) => {
  const folder = temporaryFolder(t);
  const slow = join(folder, "slow.mjs");
  // The waiting items would take minutes.
  writeFileSync(slow, "export default { run: (items) => new Promise((r) => setTimeout(r, 200, items)) };");
  const served = sheaf(t, ["serve", slow, "--port", "0", "--max-batch-size", "1", "--warmup-batches", "0"]);
  const url = await ready(served);
  const body = JSON.stringify({ inputs: Array.from({ length: 1000 }, () => "text") });
  // Not fetch: that of Node 24 throws where nobody can catch it when a connection ends in the middle of a reply.
  const asked = request(`${url}/infer`, { method: "POST", headers: { "content-type": "application/json" } });
  asked.on("error", () => undefined).on("response", (reply) => reply.on("error", () => undefined).resume());
  // Not events.once, which rejects where the connection's end comes as an error first.
  const ended = new Promise((resolve) => asked.once("close", resolve));
  asked.end(body);
  while ((await metric(url, "sheaf_queue_items")) === 0);
  served.child.kill("SIGTERM");
  served.child.kill("SIGINT");
  assert.equal(await served.ended, 1);
  await ended;
});

test("a taken port and a missing model end with 1, a wrong value with 2, each saying what is wrong", async (t) => {
  const blocker = createServer().listen(0, "127.0.0.1");
  t.after(() => blocker.close());
  await new Promise((resolve) => blocker.once("listening", resolve));
  const { port } = blocker.address() as AddressInfo;

  const taken = sheaf(t, ["serve", "mlp", "--port", String(port)]);
  assert.equal(await taken.ended, 1);
  assert.match(
    taken.output.stderr,
    new RegExp(`port ${port} .*another program listens there\\. Choose another port with PORT or --port`),
  );

  const missing = sheaf(t, ["serve", "no-such-model", "--port", "0"]);
  assert.equal(await missing.ended, 1);
  assert.match(missing.output.stderr, /^sheaf serve: There is no model no-such-model: .*\n$/);
  assert.equal(missing.output.stdout, "", "it has not listened");

  const wrong = sheaf(t, ["serve"], { MAX_BATCH_SIZE: "none" });
  assert.equal(await wrong.ended, 2);
  assert.match(wrong.output.stderr, /MAX_BATCH_SIZE must be an integer from 1 to 65536, got "none"/);

  const unknown = sheaf(t, ["serve", "--no-such-flag"]);
  assert.equal(await unknown.ended, 2);
});

test("sheaf config prints every value and where it came from", async (t) => {
  const printed = sheaf(t, ["config", "--json", "--workers", "2"], { PORT: "1234", API_KEY: "secret" });
  assert.equal(await printed.ended, 0);
  const { settings } = JSON.parse(printed.output.stdout) as {
    settings: { name: string; value: unknown; origin: string }[];
  };
  const of = (name: string): unknown[] => {
    const { value, origin } = settings.find((setting) => setting.name === name)!;
    return [value, origin];
  };
  assert.deepEqual(of("workers"), [2, "flag"]);
  assert.deepEqual(of("port"), [1234, "environment"]);
  assert.deepEqual(of("apiKey"), ["(set)", "environment"]);
  assert.deepEqual(of("host"), ["127.0.0.1", "default"]);
});

test("a worker that is killed is started again, and what comes in meanwhile is answered", async (t) => {
  const served = sheaf(t, ["serve", "mlp", "--port", "0", "--worker-isolation", "process"]);
  const url = await ready(served);
  const infer = async (): Promise<number> => (await post(`${url}/infer`, new Array(768).fill(0.5))).status;
  assert.equal(await infer(), 200);
  const [pid] = childrenOf(served.child.pid!);
  assert.ok(pid !== undefined, "the model runs in a process of its own");
  process.kill(pid, "SIGKILL");
  assert.equal(await infer(), 200);
  while ((await metric(url, "sheaf_worker_restarts_total")) !== 1);
  while ((await fetch(`${url}/readyz`)).status !== 200);
  assert.equal(await infer(), 200);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

function childrenOf(pid: number): number[] {
  const listed =
    process.platform === "linux"
      ? readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      : execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return listed.trim().split(/\s+/).map(Number);
}
