import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createBatcher } from "sheaf";
import { RecordFile } from "../../dist/observe/record-file.js";
import { entry, keysFile } from "../tenants/keys.js";
import { temporaryFolder } from "../folder.js";
import { doubling, measuringTexts, serving } from "./serving.js";

const linesOf = (path: string): Record<string, unknown>[] =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("RECORD_FILE has the runs of every model and nothing of an input, a key, a tenant or a header", async (t) => {
  const recordFile = join(temporaryFolder(t), "record.jsonl");
  const key = "planted-name";
  const { path: apiKeysFile } = keysFile(t, [entry(key)]);
  const settings = { recordFile, apiKeysFile, tenantBy: "user" as const, cacheMaxBytes: 1_000_000 };
  const server = await serving(t, [measuringTexts("texts"), doubling()], settings);
  const headers = {
    authorization: `Bearer sk-${key}`,
    "x-request-id": "planted-id",
    "user-agent": "planted-agent",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  };
  const body = { model: "texts", input: ["a planted secret", "another planted one"], user: "planted-user" };
  for (let time = 0; time < 2; time++) assert.equal((await server.post("/v1/embeddings", body, headers)).status, 200);
  assert.equal((await server.post("/infer/double", { input: [1.25, 2.5, 123_456.75] }, headers)).status, 200);
  assert.equal((await server.post("/infer/texts", { input: "planted alone" }, headers)).status, 200);
  await server.close();
  const text = readFileSync(recordFile, "utf8");
  for (const word of ["planted", "secret", "0af7651916cd43dd", "123456", "246913"])
    assert.equal(text.includes(word), false, word);
  const lines = linesOf(recordFile);
  const runs = lines.filter(({ run }) => run !== undefined);
  assert.deepEqual(new Set(runs.map(({ model }) => model)), new Set(["texts", "double"]));
  assert.equal(runs.filter(({ model }) => model === "texts").flatMap(({ waits }) => waits).length, 3);
  // The second request was answered from the cache.
  assert.equal(
    lines.reduce((sum, { model, cached = 0 }) => sum + (model === "texts" ? (cached as number) : 0), 0),
    2,
  );
  assert.equal(statSync(recordFile).mode & 0o777, 0o600);
});

test("a restart begins a new file, and so does a file that has grown too large", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "record.jsonl");
  writeFileSync(path, "earlier\n");
  const log = { warn: () => assert.fail("nothing is wrong") };
  const record = await RecordFile.open(path, log as never, { maxFileBytes: 2000 });
  assert.equal(readFileSync(`${path}.1`, "utf8"), "earlier\n");
  const batcher = createBatcher(async (items: number[]) => items, { maxBatchSize: 1 });
  const end = record.add(batcher);
  await batcher.many(Array.from({ length: 2000 }, (_, i) => i));
  end();
  await record.close();
  assert.deepEqual(readdirSync(folder).toSorted(), ["record.jsonl", "record.jsonl.1"]);
  assert.equal(statSync(`${path}.1`).mode & 0o777, 0o600);
  const first = linesOf(`${path}.1`).findLast(({ run }) => run !== undefined)!["run"] as number;
  assert.equal(linesOf(path).find(({ run }) => run !== undefined)!["run"], first + 1, "the second goes on");
});

test("a path that cannot be written, or is no file, and a worker of a fleet stop the start with the reason", async (t) => {
  const folder = temporaryFolder(t);
  const failing = (settings: object, reason: RegExp): Promise<void> =>
    assert.rejects(serving(t, [doubling()], settings), reason);
  await failing({ recordFile: join(folder, "no", "where") }, /RECORD_FILE cannot be written: ENOENT/);
  await failing({ recordFile: folder }, /RECORD_FILE cannot be written: .* is no file/);
  const worker = { recordFile: join(folder, "r"), natsUrl: "nats://127.0.0.1:1", role: "worker" };
  await failing(worker, /the gateways record calls: remove RECORD_FILE from this worker/);
});
