import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inferEvery } from "../../../dist/server/protocols/requests.js";
import { doubling, measuringTexts } from "../serving.js";
import { until } from "../../asking.js";
import { answering, servingFolder, waitingFor, type FolderServer } from "./folder-server.js";

const indexOf = async (server: FolderServer): Promise<unknown> =>
  Object.fromEntries(
    (await server.post("/v2/repository/index")).json.map(({ name, version, state, reason }: any) => [
      name,
      [version, state, reason].join(" ").trim(),
    ]),
  );

test("a folder's models are served under its names; load, replace and unload go by the protocol", async (t) => {
  const server = await servingFolder(t, {
    "a.mjs": answering("a"),
    "b/1/model.mjs": answering("b1"),
    "notes.txt": "no model",
    ".hidden.mjs": "no model",
    "__pycache__/x.py": "no model",
  });
  assert.deepEqual([await server.infer("a"), await server.infer("b")], ["a", "b1"]);
  assert.deepEqual(await indexOf(server), { a: "1 READY", b: "1 READY" });
  assert.deepEqual((await server.get("/v2")).json.extensions.includes("model_repository"), true);

  server.put("b/3/model.mjs", answering("b3"));
  server.put("b/20/model.mjs", answering("b20"));
  assert.equal(await server.infer("b"), "b1", "nothing changes before it is asked for");
  const { status, text } = await server.load("b");
  assert.deepEqual([status, text], [200, "{}"]);
  assert.equal(await server.infer("b"), "b20", "the highest number, not the last text");
  assert.deepEqual((await server.get("/v2/models/b")).json.versions, ["20"]);
  const body = { inputs: [{ name: "input", datatype: "BYTES", shape: [1], data: ["1"] }] };
  const byVersion = await server.post("/v2/models/b/versions/20/infer", body);
  assert.deepEqual([byVersion.json.model_version, byVersion.json.outputs[0].data], ["20", ['"b20"']]);
  const old = await server.post("/v2/models/b/versions/1/infer", body);
  assert.deepEqual([old.status, old.json.error], [404, 'b has no version "1"; there is "20".']);

  assert.equal((await server.unload("a")).status, 200);
  assert.equal(await server.infer("a"), 404);
  assert.deepEqual(await indexOf(server), { a: "UNAVAILABLE unloaded", b: "20 READY" });
  assert.deepEqual((await server.post("/v2/repository/index", { ready: true })).json.length, 1);
  assert.doesNotMatch((await server.get("/metrics")).text, /batcher="a"/, "what is unloaded has no metrics");
  assert.equal((await server.get("/readyz")).status, 200);
  assert.equal((await server.unload("a")).status, 200, "once more changes nothing");

  server.put("c.mjs", answering("c"));
  for (const name of ["a", "c"]) assert.equal((await server.load(name)).status, 200);
  assert.deepEqual([await server.infer("a"), await server.infer("c")], ["a", "c"]);
  assert.match((await server.get("/metrics")).text, /sheaf_items_total\{batcher="a",outcome="ok"\} 1\n/);
  const { paths } = (await server.get("/openapi.json")).json;
  assert.deepEqual(paths["/infer/{model}"].post.parameters[0].schema.enum, ["b", "a", "c"]);
});

test("counters go on over a reload: they are a name's, not a version's", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("1") });
  for (let i = 0; i < 3; i++) await server.infer("a");
  await server.replace("a", "2");
  assert.equal(await server.infer("a"), "2");
  const { text } = await server.get("/metrics");
  assert.match(text, /sheaf_items_total\{batcher="a",outcome="ok"\} 5\n/);
  assert.match(text, /sheaf_run_seconds_count\{batcher="a"\} 5\n/);
});

test("a load that fails or hangs leaves the version before it and says why, until one succeeds", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("1") }, { loadTimeoutMs: 6000 });
  const late = /it was not ready after 6000 ms \(LOAD_TIMEOUT_MS\)/;
  const broken: [string, string, RegExp][] = [
    ["no JavaScript", "export default {", /Unexpected/],
    ["a throw in load", answering("2", "load: () => { throw new Error('no weights'); },"), /no weights/],
    ["a crash in load", answering("2", "load: () => process.exit(3),"), /worker .*exit/i],
    ["a failing self-test", `export const sample = 1; export default { run: () => { throw new Error("bad sample"); } };`, /fails on its own sample: bad sample/], // prettier-ignore
    ["a failing warm-up", `export const sample = 1; let n = 0; export default { run: (items) => { if (n++ === 0 || items.length > 1) throw new Error("too many"); return items; } };`, /too many/], // prettier-ignore
    ["a load without end", answering("2", "load: () => new Promise(() => {}),"), late],
    ["a self-test without end", `export const sample = 1; export default { run: () => new Promise(() => {}) };`, late],
    ["a warm-up without end", `export const sample = 1; export default { run: (items) => items.length > 1 ? new Promise(() => {}) : items };`, late], // prettier-ignore
  ];
  for (const [what, source, reason] of broken) {
    server.put("a.mjs", source);
    const { status, json } = await server.load("a");
    assert.equal(status, 422, what);
    assert.match(json.error, reason, what);
    assert.equal(await server.infer("a"), "1", what);
    const health = await server.get("/readyz");
    assert.equal(health.status, 200, "what serves is ready");
    assert.match(health.json.models[0].reason, /^the last load failed, and the version before it serves: /);
    assert.match(health.json.models[0].reason, reason);
  }
  assert.match((await server.get("/metrics")).text, /^sheaf_model_load_failed\{batcher="a"\} 1$/m);
  await server.replace("a", "2");
  assert.equal((await server.get("/readyz")).json.models[0].reason, undefined);
});

test("a broken model at the start is reported, and the server is ready with the others", async (t) => {
  const server = await servingFolder(t, {
    "a.mjs": answering("a"),
    "b.mjs": "export default {",
    "two.mjs": answering("two"),
    "two.py": "",
  });
  assert.deepEqual([await server.infer("a"), await server.infer("b"), await server.infer("two")], ["a", 503, 503]);
  const health = await server.get("/readyz");
  assert.deepEqual([health.status, health.json.status], [200, "ok"]);
  assert.equal((await server.get("/v2/health/ready")).status, 200);
  const reasons: [string, RegExp][] = [
    ["b", /Unexpected end of input/],
    ["two", /^two is two\.mjs and two\.py; give one of them another name\.$/],
  ];
  const { data } = (await server.get("/v1/models")).json;
  for (const [name, reason] of reasons) {
    for (const list of [health.json.models, data.map((model: any) => ({ ...model, name: model.id }))]) {
      const model = list.find((one: any) => one.name === name);
      assert.equal(model.state, "failed");
      assert.match(model.reason, reason);
    }
  }
  const failedLoad = async (name: string): Promise<string | undefined> =>
    new RegExp(`^sheaf_model_load_failed\\{batcher="${name}"\\} (\\d)$`, "m").exec(
      (await server.get("/metrics")).text,
    )?.[1];
  assert.deepEqual([await failedLoad("a"), await failedLoad("b"), await failedLoad("two")], ["0", "1", "1"]);

  await server.replace("b", "b");
  assert.equal(await failedLoad("b"), "0");

  server.put("c.mjs", "export default {");
  assert.equal((await server.load("c")).status, 422);
  const { status, json } = await server.get("/readyz");
  assert.equal(status, 200);
  assert.deepEqual(json.models[3].state, "failed");
  assert.equal(await server.infer("c"), 503);
});

test("with STRICT_READINESS one broken model, without it nothing but broken ones, keep a server unready until it is replaced", async (t) => {
  const broken = { "b.mjs": "export default {" };
  for (const [files, strictReadiness] of [[{ "a.mjs": answering("a"), ...broken }, true], [broken, false]] as const) {
    const server = await servingFolder(t, files, { strictReadiness });
    const { status, json } = await server.get("/readyz");
    assert.deepEqual([status, json.status, await server.infer("b")], [503, "failed", 503]);
    await server.replace("b", "b");
    assert.equal((await server.get("/readyz")).status, 200);
  } // prettier-ignore
});

test("a model that is added later keeps the server ready while it warms up, and gets 503 itself", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("a") });
  let warm!: () => void;
  const warmUp = new Promise<void>((resolve) => (warm = resolve));
  const run = async (items: readonly unknown[]): Promise<string[]> => {
    await warmUp;
    return items.map(() => "b");
  };
  const definition = { name: "b", input: { kind: "json" }, output: { kind: "json" }, run, warmUpItem: 1 } as const;
  const loading = server.models.add("b").load({ name: "b", waitsFor: "b", load: async () => definition });
  await until(() => server.models.find("b", "model").current !== undefined);
  assert.equal((await server.get("/readyz")).status, 200);
  assert.equal((await server.get("/v2/models/b/ready")).status, 503);
  assert.deepEqual([await server.infer("a"), await server.infer("b")], ["a", 503]);
  warm();
  await loading;
  assert.deepEqual([(await server.get("/readyz")).status, await server.infer("b")], [200, "b"]);
});

test("load and unload exist only with a key and a folder, and take nothing but a name", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("a"), "d/notes.txt": "", "1/model.mjs": answering("1") });
  const outside = join(server.folder, "..", `outside-${process.pid}.mjs`);
  writeFileSync(outside, answering("outside"));
  t.after(() => rmSync(outside));
  symlinkSync(outside, join(server.folder, "linked.mjs"));
  mkdirSync(join(server.folder, "deep"));
  symlinkSync(outside, join(server.folder, "deep", "model.mjs"));
  symlinkSync(join(server.folder, "a.mjs"), join(server.folder, "inside.mjs"));
  server.put("two.mjs", answering("two"));
  server.put("two.py", "");
  server.put("both/model.mjs", "");
  server.put("both/model.py", "");

  const refused: [string, number, RegExp][] = [
    ["nobody", 404, /no model "nobody" in the folder/],
    ["..", 404, /There is no/],
    ["..%2f..%2fetc%2fpasswd", 404, /There is no model "\.\.\/\.\.\/etc\/passwd" in the folder/],
    ["%2fetc%2fpasswd", 404, /There is no/],
    ["a.mjs", 404, /no model "a\.mjs" in the folder/],
    ["constructor", 404, /no model "constructor"/],
    ["linked", 422, /linked\.mjs is a link that leaves the folder/],
    ["deep", 422, /deep\/model\.mjs is a link that leaves the folder/],
    ["two", 422, /two is two\.mjs and two\.py; give one of them another name/],
    ["both", 422, /has model\.py and model\.mjs; keep one of them/],
    ["d", 422, /has no model: name its file model\.onnx/],
    ["1", 422, /1 is a number, the name of a version/],
  ];
  for (const [name, status, message] of refused) {
    const reply = await server.load(name);
    assert.equal(reply.status, status, name);
    if (name !== "..") assert.match(reply.json.error, message);
  }
  assert.equal((await server.load("inside")).status, 200);
  assert.equal(await server.infer("inside"), "a");

  const path = "/v2/repository/models/a/load";
  const config = await server.post(path, { parameters: { config: "{}" } });
  assert.deepEqual([config.status, /parameters\.config is not supported/.test(config.json.error)], [422, true]);
  const file = await server.post(path, { parameters: { "file:1/model.mjs": "x" } });
  assert.equal(file.status, 422);
  for (const body of ["[]", "{", '{"parameters":7}', '{"parameters":[]}', '{"name":"b"}'])
    assert.ok([400, 422].includes((await server.post(path, body)).status), body);
  assert.equal((await server.post(path, {}, { "content-type": "text/plain" })).status, 415);
  const untyped = await fetch(server.url + path, { method: "POST", headers: { authorization: "Bearer k" } });
  assert.equal(untyped.status, 415, "a form or an image of another site's page cannot name JSON");
  assert.equal((await server.post(path, {}, { authorization: "Bearer other" })).status, 401);
  assert.equal((await server.post("/v2/repository/models/a/unload", { parameters: { unload_dependents: true } })).status, 422); // prettier-ignore
  assert.equal((await server.post("/v2/repository/models/a/unload", { parameters: { unload_dependents: false } })).status, 200); // prettier-ignore

  const open = await servingFolder(t, { "a.mjs": answering("a") }, { apiKey: undefined });
  assert.equal((await open.load("a")).status, 404);
  assert.equal((await open.unload("a")).status, 404);
  assert.equal(await open.infer("a"), "a");
});

test("reloads under load lose nothing, and no answer to a later request is the old version's", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("0") }, { maxBatchSize: 4 });
  let serving = 0;
  let next = 0;
  let isOver = false;
  let answered = 0;
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const from = serving;
      const output = Number(await server.infer("a"));
      assert.ok(output >= from && output <= next, `version ${output} answered while ${from} to ${next} served`);
      answered++;
    }
  };
  const callers = Promise.all(Array.from({ length: 12 }, caller));
  for (let version = 1; version <= 4; version++) {
    next = version;
    await server.replace("a", String(version));
    serving = version;
    const before = answered;
    await until(() => answered > before + 12);
  }
  isOver = true;
  await callers;
});

test("a list that is longer than the queue is answered whole by the version that it began on", async (t) => {
  const slow = (version: number): string =>
    `export default { run: async (items) => {
      await new Promise((resolve) => setTimeout(resolve, 2));
      return items.map(() => ${version});
    } };`;
  const server = await servingFolder(t, { "a.mjs": slow(1) }, { queueMaxSize: 8, maxBatchSize: 2 });
  const list = inferEvery(
    server.models.take("a", "model"),
    new Array(200).fill(1),
    { timeoutMs: 30_000 },
    () => "input",
  );
  await until(() => server.models.all[0]!.stats().items.ok > 4);
  server.put("a.mjs", slow(2));
  assert.equal((await server.load("a")).status, 200);
  assert.equal(await server.infer("a"), 2);
  assert.deepEqual([...new Set((await list).map(({ value }) => value))], [1]);
});

test("unload under load finishes what it had; what comes later is a 404", async (t) => {
  const gate = join(tmpdir(), `sheaf-gate-${process.pid}`);
  t.after(() => rmSync(gate, { force: true }));
  const held = `run: async (items) => { await gate(${JSON.stringify(gate)}); return items.map(() => "a"); },`;
  const server = await servingFolder(t, { "a.mjs": answering("a", held) }, { maxBatchSize: 2 });
  const asked = Array.from({ length: 9 }, () => server.infer("a"));
  await until(() => server.models.all[0]!.stats().queued >= 5);
  let isUnloaded = false;
  const unloading = server.unload("a").then(({ status }) => {
    isUnloaded = true;
    return status;
  });
  await until(async () => (await server.infer("a")) === 404);
  assert.equal(isUnloaded, false, "its memory is not free yet");
  writeFileSync(gate, "");
  assert.deepEqual(await Promise.all(asked), new Array(9).fill("a"));
  assert.equal(await unloading, 200);
});

test("one replacement at a time: loads of one name that wait are one, an unload cancels, a shutdown cuts off", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("a1"), "b.mjs": answering("b") });
  const repository = server.models.repository!;
  const gated = (answer: string, path: string): string => answering(answer, waitingFor(join(server.folder, path)));
  server.put("a.mjs", gated("a2", ".gate"));
  const first = server.load("a");
  await until(() => existsSync(join(server.folder, ".gate-waits")));
  server.put("b.mjs", answering("b2"));
  const others = [server.load("b"), server.load("b"), server.load("b")];
  assert.deepEqual([await server.infer("a"), await server.infer("b")], ["a1", "b"], "both serve meanwhile");
  server.put(".gate", "");
  const replies = await Promise.all([first, ...others]);
  assert.deepEqual(replies.map(({ status }) => status), [200, 200, 200, 200]); // prettier-ignore
  assert.deepEqual([await server.infer("a"), await server.infer("b")], ["a2", "b2"]);

  server.put("a.mjs", gated("a3", ".never"));
  const never = assert.rejects(repository.load("a"), {
    code: "LOAD_FAILED",
    message: /a was unloaded while it loaded/,
  });
  const waiting = assert.rejects(repository.load("b"), { message: /b was unloaded before it began to load/ });
  await until(() => existsSync(join(server.folder, ".never-waits")));
  assert.equal((await server.unload("b")).status, 200);
  assert.equal((await server.unload("a")).status, 200);
  await Promise.all([never, waiting]);
  assert.deepEqual(await indexOf(server), { a: "UNAVAILABLE unloaded", b: "UNAVAILABLE unloaded" });

  const last = assert.rejects(repository.load("a"), { code: "LOAD_FAILED", message: /shutting down/ });
  await until(async () => JSON.stringify(await indexOf(server)).includes("LOADING"));
  const queued = assert.rejects(repository.load("a"), { code: "DRAINING" });
  assert.equal(await server.close({ graceMs: 2000 }), true, "nothing was cut off but a load");
  await Promise.all([last, queued]);
  await assert.rejects(repository.load("a"), { code: "DRAINING" });
});

test("a load that hangs keeps no other model from loading, and can be replaced", async (t) => {
  const hanging = answering("a", "load: () => new Promise(() => {}),");
  const files = { "a.mjs": hanging, "b.mjs": answering("b"), "c.mjs": hanging };
  const server = await servingFolder(t, files, { isReady: false });
  await until(async () => (await server.infer("b")) === "b");
  await server.replace("d", "d");
  assert.deepEqual(
    (await server.get("/readyz")).json.models.map(({ name, state }: any) => `${name} ${state}`),
    ["a loading", "b ready", "c loading", "d ready"],
  );
  // What hangs can be unloaded, and replaced.
  assert.equal((await server.unload("a")).status, 200);
  await server.replace("a", "a2");
});

test("a pipe in a model's folder is refused by name, and others load", async (t) => {
  const server = await servingFolder(t, { "b.mjs": answering("b") });
  server.put("a/model.onnx", "no model");
  execFileSync("mkfifo", [join(server.folder, "a", "config.json"), join(server.folder, "c.mjs")]);
  for (const [name, path] of [["a", "a/config.json"], ["c", "c.mjs"]]) {
    const { status, json } = await server.load(name!);
    assert.deepEqual([status, json.error], [422, `${name} did not load: ${path} is neither a file nor a folder.`]);
  } // prettier-ignore
});

test("a request without a name never goes to another model because one was added to the folder", async (t) => {
  const server = await servingFolder(t, { "ranker.mjs": answering("ranker") });
  assert.equal((await server.post("/infer", { input: "x" })).json.output, "ranker");
  await server.replace("alpha", "alpha");
  const { status, json } = await server.post("/infer", { input: "x" });
  assert.deepEqual([status, json.error.message], [400, "Several models can answer: ranker, alpha. Name one in the request."]); // prettier-ignore
  await server.unload("ranker");
  assert.equal((await server.post("/infer", { input: "x" })).json.output, "alpha");
});

test("without a name the model that the command line names answers, whatever the folder has", async (t) => {
  const server = await servingFolder(
    t,
    { "alpha.mjs": answering("alpha") },
    { models: [{ ...doubling(), name: "zeta" }] },
  );
  const { json } = await server.post("/infer", { input: [1, 2, 3] });
  assert.deepEqual([json.model, json.output], ["zeta", [2, 4, 6]]);
});

test("while the first model that is named loads, no other one answers for it", async (t) => {
  let finish = (): void => undefined;
  const gate = new Promise<void>((resolve) => (finish = resolve));
  const slow = { ...measuringTexts("slow"), waitsFor: "it", load: () => gate.then(() => measuringTexts("slow")) };
  const server = await servingFolder(t, {}, { models: [slow, measuringTexts("fast")], isReady: false });
  await until(async () => (await server.post("/embed", { model: "fast", inputs: "ab" })).status === 200);
  assert.equal((await server.post("/embed", { inputs: "ab" })).status, 503);
  finish();
  await server.ready();
  assert.deepEqual((await server.post("/embed", { inputs: "ab" })).status, 200);
});
