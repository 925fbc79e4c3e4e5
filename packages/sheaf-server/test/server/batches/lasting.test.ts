import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFileSync, readdirSync } from "node:fs";
import { request, type ClientRequest } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import type { ModelDefinition } from "../../../dist/index.js";
import { entry, keysFile } from "../../tenants/keys.js";
import { measuringTexts } from "../serving.js";
import { temporaryFolder } from "../../folder.js";
import { batching, line, linesOf, start, until, upload } from "./batching.js";

/** Answers the first run, and later ones once it is released. */
function halting(): ModelDefinition & { release(): void } {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const { run, ...model } = measuringTexts();
  let runs = 0;
  return {
    ...model,
    run: async (texts: string[]) => {
      if (runs++ > 0) await released;
      return (run as (texts: string[]) => unknown[])(texts);
    },
    release,
  };
}

/** Sets the clock of a folder that no server has open. */
function passHours(folder: string, hours: number): void {
  const json = JSON.stringify({ clockMs: hours * 3_600_000 });
  appendFileSync(join(folder, "journal"), `${crc32(json).toString(16).padStart(8, "0")} ${json}\n`);
}

const lines = (count: number): object[] => Array.from({ length: count }, (_, n) => line(`${n}`, "x".repeat(n + 1)));

test("a batch goes on after a restart, and one whose window has passed writes the rest as expired", async (t) => {
  const folder = temporaryFolder(t);
  const first = await batching(t, { batchesDir: folder, maxBatchSize: 4 }, [halting()]);
  const batch = await start(first.openai, lines(60), { completion_window: "2h" });
  const { request_counts: before } = await until(first.openai, batch, (one) => one.request_counts!.completed >= 4);
  await first.close({ graceMs: 0 });
  passHours(folder, 1);
  const second = await batching(t, { batchesDir: folder, maxBatchSize: 4 }, [halting()]);
  const again = await until(second.openai, batch, (one) => one.request_counts!.completed > before!.completed);
  assert.equal(again.status, "in_progress");
  await second.close({ graceMs: 0 });
  passHours(folder, 3);
  const { openai } = await batching(t, { batchesDir: folder });
  const ended = await until(openai, batch);
  assert.equal(ended.status, "expired");
  const output = await linesOf(openai, ended.output_file_id);
  const errors = await linesOf(openai, ended.error_file_id);
  assert.equal(output.length, again.request_counts!.completed);
  assert.equal(new Set([...output, ...errors].map((one) => one.custom_id)).size, 60);
  assert.equal(output.length + errors.length, 60);
  for (const { response, error } of errors) assert.deepEqual([response, error.code], [null, "batch_expired"]);
});

test("a clock of the machine that steps a day ahead or back ends no batch and no file", async (t) => {
  const real = Date.now;
  t.after(() => (Date.now = real));
  const folder = temporaryFolder(t);
  const model = halting();
  const { openai, close } = await batching(t, { batchesDir: folder, maxBatchSize: 4 }, [model]);
  const batch = await start(openai, lines(20), { completion_window: "1h" });
  for (const days of [2, -2, 40]) {
    Date.now = () => real() + days * 86_400_000;
    await until(openai, batch, (one) => one.request_counts!.completed >= 4);
    assert.equal((await openai.batches.retrieve(batch.id)).status, "in_progress");
  }
  model.release();
  await until(openai, batch, ({ status }) => status === "completed");
  await close({ graceMs: 0 });
  const again = await batching(t, { batchesDir: folder });
  const ended = await again.openai.batches.retrieve(batch.id);
  assert.equal((await linesOf(again.openai, ended.output_file_id)).length, 20);
});

test("files end after their time, results after output_expires_after", async (t) => {
  const folder = temporaryFolder(t);
  const first = await batching(t, { batchesDir: folder });
  const more = { output_expires_after: { anchor: "created_at", seconds: 7200 } };
  const {
    output_file_id: output,
    input_file_id: input,
    expires_at,
  } = await until(first.openai, await start(first.openai, lines(3), more));
  assert.ok(expires_at! > Date.now() / 1000);
  await first.close({ graceMs: 0 });
  passHours(folder, 3);
  const second = await batching(t, { batchesDir: folder });
  await assert.rejects(second.openai.files.retrieve(output!), { status: 404 });
  assert.equal((await second.openai.files.retrieve(input)).id, input);
  await second.close({ graceMs: 0 });
  passHours(folder, 31 * 24);
  const third = await batching(t, { batchesDir: folder });
  await assert.rejects(third.openai.files.content(input), { status: 404 });
  while (readdirSync(join(folder, "files")).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
});

test("a tenant sees its own files and batches only, and its rotated key still does; a bound of its key holds its lines back", async (t) => {
  const keys = keysFile(t, [entry("one", { itemsInFlight: 3 }), entry("two"), entry("boss", { operator: true })]);
  const { as, post } = await batching(t, { apiKeysFile: keys.path, maxBatchSize: 8 });
  const [one, two] = [as("sk-one"), as("sk-two")];
  const batch = await start(one, lines(40));
  const refused = [
    two.files.retrieve(batch.input_file_id),
    two.files.content(batch.input_file_id),
    two.batches.retrieve(batch.id),
    two.batches.cancel(batch.id),
    start(two, lines(1), { input_file_id: batch.input_file_id }),
  ];
  await Promise.all(refused.map((one) => assert.rejects(one, { status: 404 })));
  assert.deepEqual((await two.files.list()).data.length, 1);
  assert.deepEqual((await two.batches.list()).data, []);
  const ended = await until(one, batch);
  assert.deepEqual(ended.request_counts, { total: 40, completed: 40, failed: 0 });
  const { sha256: fresh } = entry("renewed") as { sha256: string };
  keys.write({ keys: [{ name: "one", sha256: fresh }, entry("two")] });
  const renewed = as("sk-renewed");
  while (!(await renewed.batches.retrieve(batch.id).catch(() => false)))
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal((await linesOf(renewed, ended.output_file_id)).length, 40);
  assert.equal((await post("/v1/batches", {}, { authorization: "Bearer sk-one" })).status, 401);
});

test("with TENANT_BY=header the one that uploads is the tenant", async (t) => {
  const { as } = await batching(t, { tenantBy: "header" });
  const [a, b] = ["a", "b"].map((name) => as("none", { "x-tenant": name })) as [any, any];
  const batch = await until(a, await start(a, lines(5)));
  assert.equal(batch.request_counts!.completed, 5);
  await assert.rejects(b.batches.retrieve(batch.id), { status: 404 });
});

test("a batch whose model is unloaded pauses and says so; what is left runs on the version that takes its place", async (t) => {
  const model = halting();
  const { openai, models } = await batching(t, { maxBatchSize: 4 }, [model]);
  const batch = await start(openai, lines(40));
  await until(openai, batch, (one) => one.request_counts!.completed >= 4);
  const removed = models.remove(models.find("measure", "model"), 10_000);
  model.release();
  await removed;
  const paused = await until(openai, batch, ({ metadata }) => (metadata as any)?.sheaf_paused !== undefined);
  assert.match((paused.metadata as any).sheaf_paused, /^There is no model "measure"/);
  const before = paused.request_counts!.completed;
  assert.ok(before < 40);
  const next = {
    ...measuringTexts(),
    versionName: "2",
    run: (texts: string[]) => texts.map(() => Float32Array.of(2, 2)),
  };
  await models.add("measure").begin(next as never);
  const ended = await until(openai, batch);
  assert.deepEqual([ended.status, ended.request_counts!.completed], ["completed", 40]);
  assert.deepEqual(ended.metadata, { sheaf_model_versions: "1, 2" });
  const vectors = (await linesOf(openai, ended.output_file_id)).map((one) => one.response.body.data[0].embedding);
  assert.equal(vectors.filter(([length, code]) => length === 2 && code === 2).length, 40 - before);
});

test("an upload that goes on is not cut by UPLOAD_TIMEOUT_MS, and one that the client leaves is removed", async (t) => {
  const { port, url, folder, openai } = await batching(t);
  const files = (): string[] => readdirSync(join(folder, "files"));
  const part = (name: string, more: string, text: string): string =>
    `--x\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${text}`;
  const begin = async (): Promise<[ClientRequest, Socket]> => {
    const connected = once(port, "connection");
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    const client = request(`${url}/v1/files`, { method: "POST", headers, agent: false });
    client.write(part("file", '; filename="a"', "{}"));
    const [socket] = (await connected) as [Socket];
    while (files().length === 0) await new Promise((resolve) => setImmediate(resolve));
    return [client, socket];
  };
  const [client, socket] = await begin();
  const replied = once(client, "response");
  // As Node does once the time is over.
  (socket as any).server.emit("clientError", Object.assign(new Error(), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), socket);
  client.end(`\r\n${part("purpose", "", "batch")}\r\n--x--\r\n`);
  const [{ statusCode }] = await replied;
  assert.equal(statusCode, 200);
  const { id } = (await openai.files.list()).data[0]!;
  await openai.files.delete(id);
  const [left] = await begin();
  left.on("error", () => undefined).destroy();
  while (files().length > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("a full folder refuses uploads with 507, and a batch waits in it until there is room", async (t) => {
  const { openai } = await batching(t, { batchesMaxBytes: 1_048_576 });
  const { id } = await upload(openai, lines(20));
  const filler = await upload(openai, [line("big", "y".repeat(1_045_000))]);
  const batch = openai.batches.create({ input_file_id: id, endpoint: "/v1/embeddings", completion_window: "24h" });
  await assert.rejects(upload(openai, [line("more", "y".repeat(100_000))]), { status: 507 });
  const paused = await until(openai, await batch, ({ metadata }) => (metadata as any)?.sheaf_paused !== undefined);
  assert.match((paused.metadata as any).sheaf_paused, /folder of batches is full \(BATCHES_MAX_BYTES 1048576\)/);
  await openai.files.delete(filler.id);
  const ended = await until(openai, await batch);
  assert.equal(ended.request_counts!.completed, 20);
  assert.equal(ended.metadata, null);
});
