import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { toFile } from "openai";
import { gated } from "../serving.js";
import { batching, line, linesOf, start, until, upload } from "./batching.js";

test("upload, create, poll, content, list and delete with OpenAI's client: every line has its own vector", async (t) => {
  const { openai, folder } = await batching(t);
  const texts = Array.from({ length: 500 }, (_, n) => "x".repeat(1 + (n % 50)));
  const batch = await start(
    openai,
    texts.map((text, n) => line(`id-${n}`, text)),
    { metadata: { mine: "yes" } },
  );
  assert.equal(batch.status, "validating");
  const ended = await until(openai, batch);
  assert.equal(ended.status, "completed");
  assert.deepEqual(ended.request_counts, { total: 500, completed: 500, failed: 0 });
  assert.deepEqual(ended.metadata, { mine: "yes" });
  assert.equal(ended.model, "measure");
  assert.equal(ended.usage?.total_tokens, 500);
  assert.equal(ended.error_file_id, null);
  const lines = await linesOf(openai, ended.output_file_id);
  const byId = new Map(lines.map((one) => [one.custom_id, one]));
  assert.equal(byId.size, 500);
  for (const [n, text] of texts.entries()) {
    const { response, error } = byId.get(`id-${n}`);
    assert.equal(error, null);
    assert.equal(response.status_code, 200);
    assert.deepEqual(response.body.data[0].embedding, [text.length, 120]);
  }
  const files = await openai.files.list();
  assert.deepEqual(
    files.data.map(({ purpose, status }) => [purpose, status]),
    [
      ["batch_output", "processed"],
      ["batch", "processed"],
    ],
  );
  for (const name of readdirSync(join(folder, "files")))
    assert.equal(statSync(join(folder, "files", name)).mode & 0o777, 0o600);
  assert.deepEqual(
    (await openai.batches.list()).data.map(({ id }) => id),
    [batch.id],
  );
  const first = await openai.files.list({ limit: 1 });
  assert.equal(first.has_more, true);
  assert.equal((await openai.files.list({ after: first.data[0]!.id })).data[0]!.purpose, "batch");
  for (const { id } of files.data)
    assert.deepEqual(await openai.files.delete(id), { id, object: "file", deleted: true });
  assert.deepEqual(readdirSync(join(folder, "files")), []);
  await assert.rejects(openai.files.retrieve(files.data[0]!.id), { status: 404 });
});

test("a line that the model refuses is in the error file with its own status", async (t) => {
  const { openai } = await batching(t);
  const batch = await start(openai, [
    line("good", "a"),
    line("bad", ""),
    line("field", "b", { body: { model: "measure", input: "b", wrong: 1 } }),
  ]);
  const ended = await until(openai, batch);
  assert.deepEqual(ended.request_counts, { total: 3, completed: 1, failed: 2 });
  assert.deepEqual(
    (await linesOf(openai, ended.output_file_id)).map((one) => one.custom_id),
    ["good"],
  );
  const errors = await linesOf(openai, ended.error_file_id);
  assert.deepEqual(Object.fromEntries(errors.map((one) => [one.custom_id, one.response.status_code])), {
    bad: 422,
    field: 422,
  });
  assert.match(
    errors.find((one) => one.custom_id === "bad").response.body.error.message,
    /must be a text that is not empty/,
  );
});

test("wrong lines fail validation with their numbers before anything runs", async (t) => {
  let runs = 0;
  const model = { ...gated("measure"), input: { kind: "text", maxTokens: 9 } as const, run: () => (runs++, []) };
  const { openai } = await batching(t, {}, [model as never]);
  const wrong = [
    line("a", "x"), "{", "[1]", line("a", "x"), line("", "x"), line("b", "x", { url: "/v1/rerank" }),
    line("c", "x", { body: { model: "other", input: "x" } }), line("d", "x", { body: 1 }), line("e", "x", { method: "GET" }),
  ]; // prettier-ignore
  const ended = await until(openai, await start(openai, wrong));
  assert.equal(ended.status, "failed");
  assert.deepEqual(ended.errors?.data?.map(({ line, code }) => [line, code]), [
    [2, "invalid_json_line"], [3, "invalid_json_line"], [4, "duplicate_custom_id"], [5, "missing_custom_id"],
    [6, "invalid_url"], [7, "model_not_found"], [8, "invalid_request"], [9, "invalid_method"],
  ]); // prettier-ignore
  const empty = await until(openai, await start(openai, []));
  assert.equal(empty.errors?.data?.[0]?.code, "empty_file");
  assert.equal(runs, 0);
});

test("what cannot be a batch or a file is refused by name", async (t) => {
  const { openai, url, post } = await batching(t);
  const file = await upload(openai, [line("a", "x")]);
  const create = (more: object) => start(openai, [line("a", "x")], more);
  await assert.rejects(create({ endpoint: "/v1/unknown" }), /endpoint must be the path of a route that takes JSON/);
  await assert.rejects(create({ endpoint: "/v1/batches" }), /endpoint must be/);
  for (const completion_window of ["8d", "30s", "0m", "soon"])
    await assert.rejects(create({ completion_window }), /completion_window must be/);
  await assert.rejects(create({ input_file_id: "../journal" }), { status: 404 });
  await assert.rejects(create({ metadata: { a: 1 } }), /metadata must be/);
  await assert.rejects(
    create({ output_expires_after: { anchor: "created_at", seconds: 1 } }),
    /output_expires_after.seconds must be/,
  );
  const purpose = openai.files.create({ file: await toFile(Buffer.from("{}"), "x"), purpose: "assistants" });
  await assert.rejects(purpose, /purpose must be "batch", the only purpose of files here, got "assistants"/);
  assert.equal((await post("/v1/files", {})).status, 415);
  assert.equal((await fetch(`${url}/v1/files/..%2Fjournal/content`)).status, 404);
  await assert.rejects(openai.files.list({ after: "file-x" }), /after must be/);
  assert.equal((await openai.files.list()).data.at(-1)!.id, file.id);
});

test("without BATCHES_DIR every such route is 404 with one sentence", async (t) => {
  const { get, post, url } = await batching(t, { batchesDir: undefined });
  for (const reply of [
    await get("/v1/files"),
    await get("/v1/files/x/content"),
    await post("/v1/batches", {}),
    await get("/v1/batches/b"),
  ]) {
    assert.equal(reply.status, 404);
    assert.match(reply.json.error.message, /^Files and batches are off: the server needs BATCHES_DIR/);
  }
  assert.equal((await fetch(`${url}/v1/files/x`, { method: "DELETE" })).status, 404);
});

test("a gateway of a fleet refuses to start with a folder for batches", async (t) => {
  const fleet = { natsUrl: "nats://127.0.0.1:1", role: "gateway" } as const;
  await assert.rejects(batching(t, fleet), /^ConfigError: A fleet runs no batches/);
});

test("cancel keeps what is done, and a file in use is not deleted", async (t) => {
  const model = {
    ...gated("measure"),
    input: { kind: "text", maxTokens: 9 } as const,
    output: { kind: "vector", length: 1 } as const,
  };
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  let runs = 0;
  const run = async (texts: string[]) => {
    if (runs++ > 0) await released;
    return texts.map((text) => ({ vector: Float32Array.of(text.length), tokens: 1, truncated: false }));
  };
  const { openai } = await batching(t, { maxBatchSize: 4 }, [{ ...model, run } as never]);
  const { id } = await upload(
    openai,
    Array.from({ length: 100 }, (_, n) => line(`${n}`, "x")),
  );
  const batch = await openai.batches.create({
    input_file_id: id,
    endpoint: "/v1/embeddings",
    completion_window: "24h",
  });
  await until(openai, batch, ({ request_counts }) => request_counts!.completed >= 4);
  await assert.rejects(openai.files.delete(id), /reads this file; cancel it first/);
  assert.equal((await openai.batches.cancel(batch.id)).status, "cancelling");
  release();
  const ended = await until(openai, batch);
  assert.equal(ended.status, "cancelled");
  const lines = await linesOf(openai, ended.output_file_id);
  assert.equal(lines.length, ended.request_counts!.completed);
  assert.ok(lines.length >= 4 && lines.length < 100);
  assert.equal(new Set(lines.map((one) => one.custom_id)).size, lines.length);
});
