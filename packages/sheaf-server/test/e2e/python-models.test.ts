import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createBatcher, type Executor } from "sheaf";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { OpenSpec } from "../../dist/runners/contract/model-spec.js";
import { pythonFileSpec } from "../../dist/runners/python/model.js";
import { get, until, type Reply } from "../asking.js";
import { few, post, pythonModel, skipWithoutPython as skip } from "./python.js";
import { temporaryFolder } from "../folder.js";
import { listening, ready, sheaf } from "./sheaf-process.js";

const folder = temporaryFolder({ after });

test("items of a Python model that declares a weight weigh their length", { skip }, async () => {
  const specOf = async (name: string, options: string) => {
    const file = join(folder, `${name}.py`);
    writeFileSync(file, `from sheaf_worker import serve\n\nserve(lambda items: [0 for _ in items]${options})\n`);
    return (await pythonFileSpec(file)) as OpenSpec;
  };
  const plain = await specOf("plain", "");
  await plain.executor.close();
  assert.equal(plain.weigh, undefined);
  const { executor, weigh } = await specOf("weighed", ', weight="length"');
  const call = createBatcher<unknown, unknown>(executor as Executor<unknown, unknown>, { weigh });
  const weights: number[] = [];
  call.subscribe(({ weight }) => weights.push(weight));
  for (const item of ["four", { words: ["a", "bc"], most: 5 }, [1, [2, 3]]]) await call(item);
  await call.close();
  assert.deepEqual(weights, [4, 4, 3]);
});

test("models in Python and a built-in one are served together, each as it declares", { skip }, async (t) => {
  const words = ["words", "doubled", "matrix", "named", "surroundings"].map(pythonModel);
  const served = sheaf(t, ["serve", ...words, "mlp", "--port", "0"], few);
  const url = await ready(served);
  const infer = (model: string, input: unknown): Promise<Reply> => post(`${url}/infer/${model}`, { input });

  assert.equal((await infer("words", "hey")).json.output, "HEY");
  assert.deepEqual((await infer("doubled", [1, 2, 0.5])).json.output, [2, 4, 1]);
  assert.deepEqual((await post(`${url}/infer/matrix`, [[1, -2], [3, 4]])).json.output, [[1, -2], [3, 4]]); // prettier-ignore
  const record = { image: [1, 2, 3, 4, 5, 6], title: "a", more: { deep: [null] }, flag: [true] };
  const result = { sum: [21], label: "a!", more: { deep: [null] }, flag: [true] };
  assert.deepEqual((await post(`${url}/infer/named`, record)).json.output, result);
  assert.equal((await infer("mlp", new Array(768).fill(0))).json.output.length, 768);

  // What does not fit is refused here, with its path, before it takes any queue space.
  const wrong: [string, unknown, RegExp, string][] = [
    ["words", 7, /input must be a text, got 7/, "input"],
    ["doubled", [1, 2], /input must be an array of 3 numbers/, "input"],
    ["matrix", [[1, 2], [3, 0.5]], /input\[1\]\[1\] must be an integer/, "input[1][1]"], // prettier-ignore
    ["named", { ...record, image: [1, 2, 3, 4, 5, 600] }, /input\.image\[5\] must be an integer from 0 to 255, got 600/, "input.image[5]"], // prettier-ignore
    ["named", { ...record, flag: [1] }, /input\.flag\[0\] must be true or false/, "input.flag[0]"],
    ["named", { ...record, more: undefined }, /input\.more is missing; it must be any JSON value/, "input.more"],
  ];
  for (const [model, input, message, param] of wrong) {
    const { status, json } = await infer(model, input);
    assert.deepEqual([status, json.error.code, json.error.param], [422, "INVALID_INPUT", param]);
    assert.match(json.error.message, message);
  }

  const { data } = (await get(`${url}/v1/models`)).json;
  const inputs = Object.fromEntries(data.map((one: any) => [one.id, one.input]));
  assert.equal(inputs.matrix, "input: INT64 [2, 2]");
  assert.equal(inputs.named, "image: UINT8 [6], title: BYTES [], more: any JSON value, flag: BOOL [1]");
  assert.deepEqual([data[0].sample, data[2].sample], ["hello", [[1, 2], [3, 4]]]); // prettier-ignore
  assert.deepEqual([data[0].state, data[0].self_test, data[0].task], ["ready", "independent", "text"]);
  assert.match(
    data[1].note,
    /^Runs in python3, given the device cpu\. Its self-test did not run: that needs a sample of two/,
  );

  const { json: description } = await get(`${url}/openapi.json`);
  const { valid, errors } = await new Validator().validate(structuredClone(description));
  assert.ok(valid, JSON.stringify(errors));
  const body = description.paths["/infer/{model}"].post.requestBody.content["application/json"].schema;
  const items: any[] = body.anyOf[0].properties.input.anyOf;
  const { image, flag, title } = items.find(({ properties }) => properties?.image !== undefined).properties;
  assert.deepEqual([image.minItems, image.maxItems, image.items.maximum], [6, 6, 255]);
  assert.deepEqual([flag.items.type, title.type], ["boolean", "string"]);

  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

test("a Python model speaks the Open Inference Protocol, in JSON and in bytes", { skip }, async (t) => {
  const served = sheaf(t, ["serve", ...["named", "words", "matrix"].map(pythonModel), "--port", "0"], few);
  const url = await ready(served);
  const { json: metadata } = await get(`${url}/v2/models/named`);
  assert.deepEqual(metadata.inputs, [
    { name: "image", datatype: "UINT8", shape: [-1, 6] },
    { name: "title", datatype: "BYTES", shape: [-1] },
    { name: "more", datatype: "BYTES", shape: [-1] },
    { name: "flag", datatype: "BOOL", shape: [-1, 1] },
  ]);
  const texts = (name: string, data: string[]): object => ({ name, datatype: "BYTES", shape: [data.length], data });
  const { status, json } = await post(`${url}/v2/models/named/infer`, {
    inputs: [
      { name: "image", datatype: "UINT8", shape: [2, 6], data: [1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1] },
      texts("title", ["a", "b"]),
      texts("more", ['{"k":1}', "null"]),
      { name: "flag", datatype: "BOOL", shape: [2, 1], data: [true, false] },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual(json.outputs.map(({ data }: { data: unknown }) => data), [[21, 6], ["a!", "b!"], ['{"k":1}', "null"], [true, false]]); // prettier-ignore
  const broken = await post(`${url}/v2/models/named/infer`, {
    inputs: [
      { name: "image", datatype: "UINT8", shape: [1, 6], data: [1, 2, 3, 4, 5, 6] },
      texts("title", ["a"]),
      texts("more", ["{"]),
      { name: "flag", datatype: "BOOL", shape: [1, 1], data: [true] },
    ],
  });
  assert.deepEqual([broken.status, broken.json.error], [422, 'inputs[2].data[0] must be a text of JSON, such as "[1, 2]", got "{".']); // prettier-ignore
  const plain = await post(`${url}/v2/models/words/infer`, { inputs: [texts("text", ["a", "b"])] });
  assert.deepEqual(plain.json.outputs[0], { name: "output", datatype: "BYTES", shape: [2], data: ["A", "B"] });

  const header = JSON.stringify({
    inputs: [{ name: "input", datatype: "INT64", shape: [2, 2, 2], parameters: { binary_data_size: 64 } }],
    parameters: { binary_data_output: true },
  });
  const numbers = BigInt64Array.from([1n, 2n, 3n, 4n, -5n, 6n, 7n, 2n ** 60n]);
  const reply = await fetch(`${url}/v2/models/matrix/infer`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream", "inference-header-content-length": String(header.length) },
    body: Buffer.concat([Buffer.from(header), Buffer.from(numbers.buffer)]),
  });
  assert.equal(reply.status, 200);
  const bytes = Buffer.from(await reply.arrayBuffer());
  const tail = bytes.subarray(Number(reply.headers.get("inference-header-content-length")));
  assert.deepEqual(Array.from({ length: 8 }, (_, i) => tail.readBigInt64LE(8 * i)), Array.from(numbers)); // prettier-ignore
});

test("a picture travels as nested arrays and as bytes, and a wrong pixel has its path", { skip }, async (t) => {
  const served = sheaf(t, ["serve", pythonModel("picture"), "--port", "0"], few);
  const url = await ready(served);
  const image = Array.from({ length: 224 }, () => Array.from({ length: 224 }, () => [1, 2, 3]));
  assert.deepEqual((await post(`${url}/infer`, { image })).json.output, [1, 2, 3]);
  image[223]![7] = [1, 2, 256];
  const { status, json } = await post(`${url}/infer`, { image });
  assert.deepEqual([status, json.error.param], [422, "image[223][7][2]"]);
  const { json: metadata } = await get(`${url}/v2/models/picture`);
  assert.deepEqual(metadata.inputs, [{ name: "image", datatype: "UINT8", shape: [-1, 224, 224, 3] }]);

  const [rows, bytes] = [3, 224 * 224 * 3];
  const parameters = { binary_data_size: rows * bytes };
  const header = JSON.stringify({
    inputs: [{ name: "image", datatype: "UINT8", shape: [rows, 224, 224, 3], parameters }],
  });
  const pictures = [4, 5, 6].map((value) => Buffer.alloc(bytes, value));
  const reply = await fetch(`${url}/v2/models/picture/infer`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream", "inference-header-content-length": String(header.length) },
    body: Buffer.concat([Buffer.from(header), ...pictures]),
  });
  const { outputs } = (await reply.json()) as any;
  assert.deepEqual(outputs, [{ name: "output", datatype: "FP32", shape: [3, 3], data: [4, 4, 4, 5, 5, 5, 6, 6, 6] }]); // prettier-ignore
});

test(
  "while a Python model loads, the others serve, and /readyz and the lists say what is awaited",
  { skip },
  async (t) => {
    const gate = join(folder, "gate");
    const env = { ...few, GATE: gate, API_KEY: "key" };
    const served = sheaf(t, ["serve", pythonModel("gated"), pythonModel("doubled"), "--port", "0"], env);
    const url = await listening(served);
    const headers = { authorization: "Bearer key" };
    const ask = (path: string, body: object): Promise<Reply> => post(`${url}${path}`, body, headers);
    await until(async () => (await get(`${url}/readyz`)).json.models?.[1]?.state === "ready");
    const stranger = await get(`${url}/readyz`);
    assert.deepEqual(stranger.json.models[0], { name: "gated", state: "loading" }, "no reason without the key");
    const health = await get(`${url}/readyz`, headers);
    assert.equal(health.status, 503);
    const waiting = { name: "gated", state: "loading", reason: "waits for gated.py" };
    assert.deepEqual(health.json, { status: "warming", models: [waiting, { name: "doubled", state: "ready" }] });
    assert.deepEqual((await ask("/infer/doubled", [1, 2, 3])).json.output, [2, 4, 6]);
    const refused = await ask("/infer/gated", { input: "cat" });
    assert.deepEqual(
      [refused.status, refused.headers.get("retry-after"), refused.json.error.code],
      [503, "1", "NOT_READY"],
    );
    assert.match(refused.json.detail, /gated is still loading; see \/readyz/);
    const embedding = await ask("/v1/embeddings", { model: "gated", input: "cat" });
    const protocol = await ask("/v2/models/gated/infer", { inputs: [] });
    assert.deepEqual([embedding.status, protocol.status, typeof protocol.json.error], [503, 503, "string"]);
    const { json } = await get(`${url}/v1/models`, headers);
    assert.deepEqual(json.data.map(({ id, state, input }: any) => [id, state, typeof input]), [["gated", "loading", "undefined"], ["doubled", "ready", "string"]]); // prettier-ignore
    assert.equal((await get(`${url}/v1/models`)).status, 401);
    assert.deepEqual((await ask("/v2/repository/index", {})).json, [
      { name: "gated", version: "1", state: "LOADING", reason: "waits for gated.py" },
      { name: "doubled", version: "1", state: "READY", reason: "" },
    ]);
    assert.equal((await get(`${url}/v2/models/gated/ready`, headers)).status, 503);
    assert.equal((await get(`${url}/v2/models/doubled/ready`, headers)).status, 200);
    const openapi = await get(`${url}/openapi.json`, headers);
    assert.deepEqual(openapi.json.paths["/v1/models/{id}"].get.parameters[0].schema.enum, ["gated", "doubled"]);

    writeFileSync(gate, "");
    await ready(served);
    const { data } = (await ask("/v1/embeddings", { model: "gated", input: ["cat", "mouse"] })).json;
    assert.deepEqual(data.map(({ embedding }: any) => embedding), [[3, 1, 2], [5, 1, 2]]); // prettier-ignore
    const { paths } = (await get(`${url}/openapi.json`, headers)).json;
    const body = paths["/v1/embeddings"].post.requestBody.content["application/json"].schema;
    assert.deepEqual(body.properties.model.anyOf[0].enum, ["gated"], "what it takes is known now");
  },
);

test("a config file names Python models, with settings of their own", { skip }, async (t) => {
  const config = join(folder, "models.config.json");
  const models = [
    { model: pythonModel("words"), name: "shout", maxBatchSize: 4, workers: 2, python: "python3" },
    "mlp",
    pythonModel("doubled"),
  ];
  writeFileSync(config, JSON.stringify({ port: 0, warmupBatches: 2, models }));
  const served = sheaf(t, ["serve", "--config", config]);
  const url = await ready(served);
  const { data } = (await get(`${url}/v1/models`)).json;
  assert.deepEqual(data.map((one: any) => [one.id, one.max_batch_size]), [["shout", 4], ["mlp", 32], ["doubled", 32]]); // prettier-ignore
  assert.equal((await post(`${url}/infer`, "hey")).json.output, "HEY");
  const { text: metrics } = await get(`${url}/metrics`);
  assert.match(metrics, /sheaf_workers\{batcher="shout",state="ready"\} 2/);
  assert.match(metrics, /sheaf_workers\{batcher="doubled",state="ready"\} 1/);
});

test(
  "the Python of .venv beside the file runs it, without secrets, with its device and threads",
  { skip },
  async (t) => {
    const project = mkdtempSync(join(folder, "project-"));
    const model = join(project, "surroundings.py");
    symlinkSync(pythonModel("surroundings"), model);
    const python3 = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
    mkdirSync(join(project, ".venv/bin"), { recursive: true });
    symlinkSync(python3, join(project, ".venv/bin/python"));
    const env = { ...few, API_KEY: "key", NATS_PASSWORD: "password", WORKER_THREADS: "3", MINE: "kept" };
    const served = sheaf(t, ["serve", model, "--port", "0"], env);
    const url = await ready(served);
    const { output } = (await post(`${url}/infer`, {}, { authorization: "Bearer key" })).json;
    assert.equal(output.python, join(project, ".venv/bin/python"));
    assert.deepEqual(output.data, { device: "cpu", threads: 3 });
    assert.deepEqual([output.env.MINE, output.env.OMP_NUM_THREADS], ["kept", "3"]);
    for (const name of ["API_KEY", "NATS_PASSWORD"]) assert.equal(output.env[name], undefined, name);
  },
);

test("a Python model whose results depend on the batch runs one by one", { skip }, async (t) => {
  const served = sheaf(t, ["serve", pythonModel("beside"), "--port", "0"], few);
  const url = await ready(served);
  const { json } = await get(`${url}/v1/models/beside`);
  assert.deepEqual([json.self_test, json.max_batch_size], ["dependent", 1]);
  assert.deepEqual((await post(`${url}/infer`, { inputs: [1, 2, 3, 4] })).json.outputs, [1, 2, 3, 4]);
});

test("sheaf bench and sheaf tune take a Python model", { skip }, async (t) => {
  const bench = sheaf(t, ["bench", pythonModel("words"), "--rate", "50", "--duration", "300ms", "--warm-up", "0ms", "--json"]); // prettier-ignore
  assert.equal(await bench.ended, 0, bench.output.stderr);
  assert.ok(JSON.parse(bench.output.stdout).results[0].ok > 0);
  const sampled = sheaf(t, ["bench", pythonModel("named"), "--rate", "50", "--duration", "300ms", "--warm-up", "0ms", "--json"]); // prettier-ignore
  assert.equal(await sampled.ended, 0, sampled.output.stderr);
  const tune = sheaf(t, ["tune", pythonModel("doubled"), "--max-time", "1s", "--json"]);
  assert.ok([0, 3].includes((await tune.ended) as number), tune.output.stderr);
});
