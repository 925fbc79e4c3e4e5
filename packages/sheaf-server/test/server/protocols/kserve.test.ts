import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../../dist/index.js";
import { doubling, measuringTexts, serving, type Serving } from "../serving.js";

/** One run for each item; two inputs, one of any length; also gives texts back. */
const adding: ModelDefinition = {
  name: "add",
  input: {
    kind: "tensors",
    tensors: [
      { name: "INPUT0", datatype: "INT32", shape: [2] },
      { name: "INPUT1", datatype: "INT64", shape: [null] },
      { name: "WORDS", datatype: "BYTES", shape: [1] },
    ],
  },
  output: {
    kind: "tensors",
    tensors: [
      { name: "SUM", datatype: "INT64", shape: [null] },
      { name: "FIRST", datatype: "INT32", shape: [2] },
      { name: "WORDS", datatype: "BYTES", shape: [1] },
      { name: "EVEN", datatype: "BOOL", shape: [2] },
    ],
  },
  groupKey: (item: Record<string, unknown>) => String(item["shape:INPUT1"]),
  run: (items: { INPUT0: Int32Array; INPUT1: BigInt64Array; WORDS: string[]; "shape:INPUT1": Int32Array }[]) =>
    items.map((item) => ({
      SUM: item.INPUT1.map((value) => value + BigInt(item.INPUT0[0]!)),
      "shape:SUM": item["shape:INPUT1"],
      FIRST: item.INPUT0,
      WORDS: item.WORDS.map((word) => word.toUpperCase()),
      EVEN: Uint8Array.from(item.INPUT0, (value) => 1 - (value % 2)),
    })),
};

interface BinaryReply {
  readonly status: number;
  readonly json: any;
  readonly bytes: Buffer;
  readonly type: string | null;
}

async function postBinary(
  server: Serving,
  path: string,
  json: unknown,
  bytes: Uint8Array,
  headers: Record<string, string> = {},
): Promise<BinaryReply> {
  const head = Buffer.from(JSON.stringify(json));
  const response = await fetch(server.url + path, {
    method: "POST",
    body: Buffer.concat([head, bytes]),
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(head.length),
      ...headers,
    },
  });
  const body = Buffer.from(await response.arrayBuffer());
  const length = Number(response.headers.get("inference-header-content-length") ?? body.length);
  return {
    status: response.status,
    json: JSON.parse(body.toString("utf8", 0, length)),
    bytes: body.subarray(length),
    type: response.headers.get("content-type"),
  };
}

const infer = "/v2/models/double/infer";
const floats = (...values: number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);

test("server, health and model metadata have the protocol's fields", async (t) => {
  const server = await serving(t, [doubling(), adding, measuringTexts()]);
  const { json: metadata } = await server.get("/v2");
  assert.equal(metadata.name, "sheaf");
  assert.deepEqual(metadata.extensions, ["binary_tensor_data", "model_configuration", "schedule_policy", "statistics"]);
  assert.deepEqual((await server.get("/v2/health/live")).json, { live: true });
  assert.deepEqual((await server.get("/v2/health/ready")).json, { ready: true });
  assert.deepEqual((await server.get("/v2/models/add/ready")).json, { name: "add", ready: true });
  assert.deepEqual((await server.get("/v2/models/double")).json, {
    name: "double",
    versions: ["1"],
    platform: "sheaf",
    inputs: [{ name: "input", datatype: "FP32", shape: [-1, 3] }],
    outputs: [{ name: "output", datatype: "FP32", shape: [-1, 3] }],
  });
  const { inputs } = (await server.get("/v2/models/add")).json;
  assert.deepEqual(inputs[1], { name: "INPUT1", datatype: "INT64", shape: [-1, -1] });
  assert.deepEqual((await server.get("/v2/models/measure")).json.inputs, [
    { name: "text", datatype: "BYTES", shape: [-1] },
  ]);
  const missing = await server.get("/v2/models/none");
  assert.equal(missing.status, 404);
  assert.match(missing.json.error, /no model "none"; served are: double, add, measure/);
  assert.deepEqual(Object.keys((await server.get("/v2/nothing")).json), ["error"]);
  const wrongMethod = await server.post("/v2/models/double", {});
  assert.deepEqual([wrongMethod.status, Object.keys(wrongMethod.json)], [405, ["error"]]);
});

test("config says what a model takes and how it is served, in Triton's words", async (t) => {
  const whole: ModelDefinition = { ...doubling("whole"), maxBatchSize: 1 };
  const unbatched: ModelDefinition = {
    ...adding,
    name: "unbatched",
    input: { ...adding.input, hasBatchAxis: false } as ModelDefinition["input"],
  };
  const settings = { maxBatchSize: 16, maxWaitMs: 5, queueMaxSize: 50, requestTimeoutMs: 2000, workers: 3 };
  const server = await serving(t, [doubling(), adding, whole, unbatched], settings);
  assert.deepEqual((await server.get("/v2/models/double/config")).json, {
    name: "double",
    platform: "sheaf",
    backend: "sheaf",
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: 16,
    input: [{ name: "input", data_type: "TYPE_FP32", dims: [3] }],
    output: [{ name: "output", data_type: "TYPE_FP32", dims: [3] }],
    instance_group: [{ name: "double", kind: "KIND_AUTO", count: 3 }],
    dynamic_batching: {
      max_queue_delay_microseconds: 5000,
      default_queue_policy: {
        timeout_action: "REJECT",
        default_timeout_microseconds: 2_000_000,
        allow_timeout_override: true,
        max_queue_size: 50,
      },
    },
    model_transaction_policy: { decoupled: false },
  });
  const { json: add } = await server.get("/v2/models/add/versions/1/config");
  assert.deepEqual(add.input, [
    { name: "INPUT0", data_type: "TYPE_INT32", dims: [2] },
    { name: "INPUT1", data_type: "TYPE_INT64", dims: [-1] },
    { name: "WORDS", data_type: "TYPE_STRING", dims: [1] },
  ]);
  assert.equal((await server.get("/v2/models/whole/config")).json.max_batch_size, 1);
  assert.equal((await server.get("/v2/models/unbatched/config")).json.max_batch_size, 0);
  assert.equal((await server.get("/v2/models/none/config")).status, 404);
  assert.equal((await server.get("/v2/models/double/versions/2/config")).status, 404);
});

test("stats count requests, items and batches of every protocol, and their times", async (t) => {
  const failing: ModelDefinition = { ...doubling("fail"), run: () => Promise.reject(new Error("broken")) };
  const server = await serving(t, [doubling(), failing], { maxBatchSize: 4, schedulerStrategy: "greedy" });
  const statsOf = async (path: string): Promise<any> => (await server.get(path)).json.model_stats;
  const [before] = await statsOf("/v2/models/double/stats");
  assert.deepEqual([before.last_inference, before.inference_count, before.execution_count], [0, 0, 0]);
  const startedAtMs = Date.now();
  const rows = { name: "input", datatype: "FP32", shape: [8, 3], data: Array.from({ length: 24 }, () => 1) };
  assert.equal((await server.post(infer, { inputs: [rows] })).status, 200);
  assert.equal((await server.post("/infer/double", [1, 2, 3])).status, 200);
  assert.equal((await server.post("/infer/double", { inputs: [[1, 2, 3], "wrong"] })).status, 200);
  assert.equal((await server.post("/infer/double", ["wrong"])).status, 422);
  assert.equal((await server.post("/infer/fail", [1, 2, 3])).status, 500);

  const [{ inference_stats: counted, batch_stats: batches, ...stats }] = await statsOf("/v2/models/double/stats");
  assert.deepEqual([stats.name, stats.version, stats.inference_count], ["double", "1", 10]);
  assert.ok(stats.last_inference >= startedAtMs && stats.last_inference <= Date.now());
  assert.deepEqual([counted.success.count, counted.fail.count, counted.queue.count], [3, 0, 3]);
  assert.equal(counted.success.ns > 0, true);
  assert.ok(Math.abs(counted.queue.ns + counted.compute_infer.ns - counted.success.ns) <= 2);
  const itemsRun = batches.reduce((sum: number, one: any) => sum + one.batch_size * one.compute_infer.count, 0);
  assert.equal(itemsRun, 10);
  const runs = batches.reduce((sum: number, one: any) => sum + one.compute_infer.count, 0);
  assert.equal(stats.execution_count, runs);
  assert.ok(batches.every((one: any) => one.compute_infer.ns > 0 && one.compute_input.ns === 0));

  const [all, other] = await statsOf("/v2/models/stats");
  assert.deepEqual([all.name, all.inference_count], ["double", 10]);
  assert.deepEqual([other.name, other.inference_count, other.execution_count], ["fail", 0, 0]);
  assert.deepEqual([other.inference_stats.success.count, other.inference_stats.fail.count], [0, 1]);
  assert.deepEqual(await statsOf("/v2/models/double/versions/1/stats"), await statsOf("/v2/models/double/stats"));
  assert.equal((await server.get("/v2/models/none/stats")).status, 404);
});

test("the repository's index lists every model and its state, or those that are ready", async (t) => {
  let load!: () => void;
  const loaded = new Promise<void>((resolve) => (load = resolve));
  const executor = (ready: () => Promise<void>): ModelDefinition["run"] => ({
    slots: 1,
    ready,
    run: async (items: never[]) => items,
    close: () => Promise.resolve(),
  });
  const loading: ModelDefinition = { ...doubling("slow"), run: executor(() => loaded) };
  const broken: ModelDefinition = { ...doubling("broken"), run: executor(() => Promise.reject(new Error("no file"))) };
  const server = await serving(t, [doubling(), loading, broken]);
  await assert.rejects(server.models.all[2]!.ready());
  await server.models.all[0]!.ready();
  const index = async (body: unknown): Promise<unknown> => (await server.post("/v2/repository/index", body)).json;
  const entry = (name: string, state: string, reason = ""): object => ({ name, version: "1", state, reason });
  const all = [entry("double", "READY"), entry("slow", "LOADING"), entry("broken", "UNAVAILABLE", "no file")];
  assert.deepEqual(await index({}), all);
  assert.deepEqual(await index({ ready: false }), all);
  assert.deepEqual(await index({ ready: true }), [all[0]]);
  // tritonclient sends no body, and names no type.
  const bare = await server.app.inject({ method: "POST", url: "/v2/repository/index" });
  assert.deepEqual(JSON.parse(bare.body), all);
  for (const [body, status] of [
    [{ ready: "yes" }, 422],
    [{ redy: true }, 422],
    ["{", 400],
  ] as const)
    assert.equal((await server.post("/v2/repository/index", body)).status, status);
  load();
});

test("JSON tensors, flat or nested, of several types; rows are items, and may be more than a batch", async (t) => {
  const server = await serving(t, [adding], { maxBatchSize: 4 });
  const { status, json } = await server.post("/v2/models/add/infer", {
    id: "42",
    inputs: [
      { name: "INPUT0", shape: [2, 2], datatype: "INT32", data: [1, 2, 3, 4] },
      {
        name: "INPUT1",
        shape: [2, 3],
        datatype: "INT64",
        data: [[10, 20, 30], [40, 50, 60]], // prettier-ignore
      },
      { name: "WORDS", shape: [2, 1], datatype: "BYTES", data: ["a", "é"] },
    ],
    outputs: [{ name: "SUM" }, { name: "EVEN" }, { name: "WORDS" }],
  });
  assert.equal(status, 200);
  assert.deepEqual(json, {
    model_name: "add",
    model_version: "1",
    id: "42",
    outputs: [
      { name: "SUM", datatype: "INT64", shape: [2, 3], data: [11, 21, 31, 43, 53, 63] },
      { name: "EVEN", datatype: "BOOL", shape: [2, 2], data: [false, true, false, true] },
      { name: "WORDS", datatype: "BYTES", shape: [2, 1], data: ["A", "É"] },
    ],
  });
});

test("forty rows go through batches of four and come back in order", async (t) => {
  const model = doubling();
  const server = await serving(t, [model], { maxBatchSize: 4 });
  const data = Array.from({ length: 120 }, (_, i) => i);
  const inputs = [{ name: "input", shape: [40, 3], datatype: "FP32", data }];
  const { json } = await server.post(infer, { inputs });
  assert.deepEqual(json.outputs, [
    { name: "output", datatype: "FP32", shape: [40, 3], data: data.map((value) => value * 2) },
  ]);
  assert.ok(model.runs >= 10, `${model.runs} runs`);
});

test("the binary extension, in and out, mixed with JSON tensors", async (t) => {
  const server = await serving(t, [adding, doubling()]);
  const words = Buffer.concat([Buffer.from([2, 0, 0, 0]), Buffer.from("é"), Buffer.from([0, 0, 0, 0])]);
  const int64 = Buffer.from(BigInt64Array.of(9007199254740993n, -5n).buffer);
  const reply = await postBinary(
    server,
    "/v2/models/add/infer",
    {
      inputs: [
        { name: "WORDS", shape: [2, 1], datatype: "BYTES", parameters: { binary_data_size: words.length } },
        { name: "INPUT0", shape: [2, 2], datatype: "INT32", data: [1, 2, 3, 4] },
        { name: "INPUT1", shape: [2, 1], datatype: "INT64", parameters: { binary_data_size: 16 } },
      ],
      outputs: [
        { name: "SUM", parameters: { binary_data: true } },
        { name: "FIRST" },
        { name: "WORDS", parameters: { binary_data: true } },
      ],
    },
    Buffer.concat([words, int64]),
  );
  assert.equal(reply.status, 200, JSON.stringify(reply.json));
  assert.equal(reply.type, "application/octet-stream");
  assert.deepEqual(reply.json.outputs, [
    { name: "SUM", datatype: "INT64", shape: [2, 1], parameters: { binary_data_size: 16 } },
    { name: "FIRST", datatype: "INT32", shape: [2, 2], data: [1, 2, 3, 4] },
    { name: "WORDS", datatype: "BYTES", shape: [2, 1], parameters: { binary_data_size: 10 } },
  ]);
  const [first, second] = [reply.bytes.readBigInt64LE(0), reply.bytes.readBigInt64LE(8)];
  assert.deepEqual([first, second], [9007199254740994n, -2n], "64-bit integers are exact in binary");
  assert.equal(reply.bytes.toString("utf8", 20, 22), "É");

  const all = await postBinary(
    server,
    infer,
    {
      parameters: { binary_data_output: true },
      inputs: [{ name: "input", shape: [1, 3], datatype: "FP32", parameters: { binary_data_size: 12 } }],
    },
    floats(1, 2, 3),
  );
  assert.deepEqual(all.bytes, floats(2, 4, 6));
});

test("a repeated JSON head is used with the new bytes after it, and a different one is parsed", async (t) => {
  const server = await serving(t, [doubling()]);
  const sized = (more: object = {}): object => ({
    ...more,
    inputs: [{ name: "input", shape: [1, 3], datatype: "FP32", parameters: { binary_data_size: 12 } }],
  });
  const inBytes = { parameters: { binary_data_output: true } };
  const asked: [object, number][] = [[inBytes, 1], [inBytes, 2], [{ id: "a" }, 3], [{ id: "b" }, 4], [inBytes, 5]]; // prettier-ignore
  for (const [more, first] of asked) {
    const reply = await postBinary(server, infer, sized(more), floats(first, 0, 0));
    assert.equal(reply.status, 200);
    assert.equal(reply.json.id, (more as { id?: string }).id);
    const output = more === inBytes ? [...new Float32Array(Uint8Array.from(reply.bytes).buffer)] : reply.json.outputs[0].data; // prettier-ignore
    assert.deepEqual(output, [2 * first, 0, 0]);
  }
});

test("texts are BYTES, as a row or as a column, and an empty one is refused", async (t) => {
  const server = await serving(t, [measuringTexts()]);
  for (const shape of [[2], [2, 1]]) {
    const inputs = [{ name: "text", shape, datatype: "BYTES", data: ["ab", "c"] }];
    const { json } = await server.post("/v2/models/measure/infer", { inputs });
    assert.deepEqual(json.outputs, [{ name: "output", datatype: "FP32", shape: [2, 2], data: [2, 97, 1, 99] }]);
  }
  const inputs = [{ name: "text", shape: [2], datatype: "BYTES", data: ["ab", ""] }];
  const { status, json } = await server.post("/v2/models/measure/infer", { inputs });
  assert.equal(status, 422);
  assert.match(json.error, /inputs\[0\]\.data\[1\] must be a text that is not empty/);
});

test("what breaks the protocol is a 400 with its reason, and the server serves on", async (t) => {
  const server = await serving(t, [doubling(), measuringTexts()]);
  const input = { name: "input", shape: [1, 3], datatype: "FP32" };
  const data = [1, 2, 3];
  const good = { ...input, data };
  const sized = (binary_data_size: unknown): object => ({ inputs: [{ ...input, parameters: { binary_data_size } }] });
  const texts = (count: number, binary_data_size: number): object => ({
    inputs: [{ name: "text", shape: [count], datatype: "BYTES", parameters: { binary_data_size } }],
  });
  const json: [reason: string, body: unknown][] = [
    ["datatype must be FP32", { inputs: [{ ...good, datatype: "INT64" }] }],
    ["datatype must be FP32", { inputs: [{ ...good, datatype: "nonsense" }] }],
    ["name must be one of input", { inputs: [{ ...good, name: "x" }] }],
    ["each once", { inputs: [good, good] }],
    ["inputs lacks input", { inputs: [] }],
    ["inputs must be an array", {}],
    ["must be an object", "[]"],
    ["must hold 3 elements", { inputs: [{ ...input, data: [1, 2] }] }],
    ["inputs[0].shape[1] must be a length, from 0 to 2^53 − 1, got -3", { inputs: [{ ...input, shape: [1, -3], data: [] }] }],
    ["shape must be an array of lengths", { inputs: [{ ...input, shape: "3", data: [] }] }],
    ["shape must have at most 256 axes, got 100000", { inputs: [{ ...good, shape: Array(100_000).fill(1) }] }],
    ["outputs[0].name must be one of output", { inputs: [good], outputs: [{ name: "y" }] }],
    ["id must be a text", { id: 5, inputs: [good] }],
    ["id must be a text of at most 128", { id: "x".repeat(1000), inputs: [good] }],
    ["not JSON", "{"],
  ]; // prettier-ignore
  const binary: [reason: string, body: object, bytes: Uint8Array, length?: string | undefined, path?: string][] = [
    ["length of the JSON, at most", sized(12), floats(1, 2, 3), "99999999"],
    ["length of the JSON, at most", sized(12), floats(1, 2, 3), "-1"],
    ["length of the JSON, at most", sized(12), floats(1, 2, 3), "1e3"],
    ["not JSON", sized(12), floats(1, 2, 3), "5"],
    ["body is empty", sized(12), floats(1, 2, 3), "0"],
    ["binary_data_size must be a length within", sized(12), floats(1, 2)],
    ["binary_data_size must be a length within", sized(-4), floats(1, 2, 3)],
    ["binary_data_size must be a length within", sized("12"), floats(1, 2, 3)],
    ["must have 12 bytes for 3 × FP32, got 8", sized(8), floats(1, 2)],
    ["4 bytes follow that belong to no input", sized(12), floats(1, 2, 3, 4)],
    ["either data or binary_data_size", { inputs: [{ ...good, parameters: { binary_data_size: 12 } }] }, floats(1, 2, 3)],
    ["claims 4294967295 bytes", texts(1, 5), Buffer.from([255, 255, 255, 255, 1]), undefined, "/v2/models/measure/infer"],
    ["ends before text 1 of 2", texts(2, 5), Buffer.from([1, 0, 0, 0, 65]), undefined, "/v2/models/measure/infer"],
  ]; // prettier-ignore
  const replies = [
    ...json.map(([reason, body]) => [reason, server.post(infer, body)] as const),
    ...binary.map(([reason, body, bytes, length, path = infer]) => [reason, postBinary(server, path, body, bytes, length === undefined ? {} : { "inference-header-content-length": length })] as const),
  ]; // prettier-ignore
  for (const [reason, reply] of replies) {
    const { status, json } = await reply;
    assert.deepEqual([status, json.error.includes(reason)], [400, true], `${reason}: ${status} ${json.error}`);
    assert.deepEqual(Object.keys(json), ["error"]);
  }
  assert.equal((await server.post(infer, { inputs: [good] })).status, 200);
});

test("what the model does not take, or does nothing here, is a 422 before any queue space", async (t) => {
  const model = doubling();
  const server = await serving(t, [model], { maxInputs: 10 });
  const input = { name: "input", shape: [1, 3], datatype: "FP32", data: [1, 2, 3] };
  const tensor = (shape: number[], data: unknown[]): object => ({ inputs: [{ ...input, shape, data }] });
  const asking = (parameters: object): object => ({ inputs: [input], parameters });
  const output = (parameters: object): object => ({ inputs: [input], outputs: [{ name: "output", parameters }] });
  const cases: [body: object | string, message: RegExp][] = [
    [tensor([1, 4], [1, 2, 3, 4]), /shape must be \[-1, 3\] .* got \[1, 4\]/],
    [tensor([3], [1, 2, 3]), /shape must be \[-1, 3\]/],
    [tensor([0, 3], []), /^inputs/],
    [tensor([11, 3], []), /at most 10 \(MAX_INPUTS/],
    [tensor([1_000_000_000, 3], []), /at most 10 \(MAX_INPUTS/],
    [tensor([1, 3], [1, "2", 3]), /data\[1\] must be a finite number/],
    ['{"inputs":[{"name":"input","shape":[1,3],"datatype":"FP32","data":[1,1e999,3]}]}', /data\[1\] must be a finite/],
    [asking({ priority: 3 }), /priority must be 0, 1 or 2, got 3/],
    // Texts that would pick an entry, or a property, of a list.
    [asking({ priority: "1" }), /priority must be 0, 1 or 2/],
    [asking({ priority: "length" }), /priority must be 0, 1 or 2/],
    [asking({ timeout: -1 }), /timeout must be/],
    [asking({ timeout: "soon" }), /timeout must be/],
    [asking({ timeout: 30_000_001 }), /timeout must be .* at most 25000000 \(REQUEST_TIMEOUT_MS\)/],
    [asking({ sequence_id: 5 }), /^parameters\.sequence_id is not supported; there are priority, timeout, binary_data_output\.$/],
    [output({ classification: 2 }), /^outputs\[0\]\.parameters\.classification is not supported; there is binary_data\.$/],
    [{ inputs: [{ ...input, parameters: { shared_memory_region: "a" } }] }, /^inputs\[0\]\.parameters\.shared_memory_region is not supported/],
    [asking({ binary_data_output: 1 }), /binary_data_output must be true or false, got 1/],
    [output({ binary_data: "yes" }), /^outputs\[0\]\.parameters\.binary_data must be true or false/],
  ]; // prettier-ignore
  for (const [body, message] of cases) {
    const { status, json } = await server.post(infer, body);
    assert.equal(status, 422, JSON.stringify(body));
    assert.match(json.error, message);
  }
  const binary = { inputs: [{ ...input, data: undefined, parameters: { binary_data_size: 12 } }] };
  assert.equal((await postBinary(server, infer, binary, floats(1, NaN, 3))).status, 422);
  assert.equal((await server.post(infer, { inputs: [input], parameters: 7 })).status, 400);
  assert.equal(model.items, 0);
  for (const parameters of [...[0, 1, 2].map((priority) => ({ priority, timeout: 5_000_000 })), { timeout: 0 }])
    assert.equal((await server.post(infer, asking(parameters))).status, 200);
});

test("a compressed body is a 415, whatever its content type", async (t) => {
  const server = await serving(t, [doubling()]);
  for (const type of ["application/json", "application/octet-stream", "text/plain", undefined]) {
    const { statusCode, body } = await server.app.inject({
      method: "POST",
      url: infer,
      payload: Buffer.from("{}"),
      headers: { "content-encoding": "gzip", ...(type && { "content-type": type }) },
    });
    assert.equal(statusCode, 415, type);
    assert.match(JSON.parse(body).error, /Send the body uncompressed/);
  }
});

test("a binary text that is not UTF-8 is a 422, by its place", async (t) => {
  const server = await serving(t, [measuringTexts()]);
  const texts = [Buffer.from("é"), Buffer.from([0x61, 0xff])];
  const bytes = Buffer.concat(
    texts.flatMap((text) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(text.length);
      return [length, text];
    }),
  );
  const inputs = [{ name: "text", shape: [2], datatype: "BYTES", parameters: { binary_data_size: bytes.length } }];
  const { status, json } = await postBinary(server, "/v2/models/measure/infer", { inputs }, bytes);
  assert.deepEqual([status, json.error], [422, "inputs[0][1] must be UTF-8."]);
});

test("a body of no type is taken with a header length, another type is a 415", async (t) => {
  const server = await serving(t, [doubling()]);
  const inputs = [{ name: "input", shape: [1, 3], datatype: "FP32", parameters: { binary_data_size: 12 } }];
  const body = { inputs };
  const wrong = await postBinary(server, infer, body, floats(1, 2, 3), {
    "content-type": "text/plain",
  });
  assert.equal(wrong.status, 415);
  assert.match(wrong.json.error, /application\/octet-stream/);
  const none = await server.app.inject({
    method: "POST",
    url: infer,
    payload: Buffer.concat([Buffer.from(JSON.stringify(body)), floats(1, 2, 3)]),
    headers: { "inference-header-content-length": String(JSON.stringify(body).length) },
  });
  assert.equal(none.statusCode, 200, none.body);
});

test("a model of JSON values, as a worker module is, takes and gives a JSON text a row", async (t) => {
  const server = await serving(t, [
    {
      name: "any",
      input: { kind: "json" },
      output: { kind: "json" },
      run: (items: unknown[]) => items.map((item) => ({ got: item, floats: Float32Array.of(1, 2) })),
    },
  ]);
  const { json: metadata } = await server.get("/v2/models/any");
  assert.deepEqual(metadata.inputs, [{ name: "input", datatype: "BYTES", shape: [-1] }]);
  assert.deepEqual(metadata.outputs, [{ name: "output", datatype: "BYTES", shape: [-1] }]);
  const input = { name: "input", datatype: "BYTES", shape: [2] };
  const { json } = await server.post("/v2/models/any/infer", {
    inputs: [{ ...input, data: ['{"a":[1,"b"]}', "7"] }],
  });
  const [{ data, ...output }] = json.outputs;
  assert.deepEqual(output, { name: "output", datatype: "BYTES", shape: [2] });
  const floats = [1, 2];
  assert.deepEqual(data.map((text: string) => JSON.parse(text)), [{ got: { a: [1, "b"] }, floats }, { got: 7, floats }]); // prettier-ignore
  const wrong = await server.post("/v2/models/any/infer", { inputs: [{ ...input, data: ["7", "not JSON"] }] });
  assert.equal(wrong.status, 422);
  assert.match(wrong.json.error, /data\[1\] must be a text of JSON.*got "not JSON"/);
  assert.deepEqual((await server.post("/infer/any", { input: 7 })).json.output.got, 7);
});

test("every model route answers for version 1 too, and 404 for any other", async (t) => {
  const server = await serving(t, [doubling()]);
  const path = "/v2/models/double/versions/1";
  assert.deepEqual((await server.get(path)).json, (await server.get("/v2/models/double")).json);
  assert.deepEqual((await server.get(`${path}/ready`)).json, { name: "double", ready: true });
  const body = { inputs: [{ name: "input", shape: [1, 3], datatype: "FP32", data: [1, 2, 3] }] };
  const { json } = await server.post(`${path}/infer`, body);
  assert.deepEqual([json.model_name, json.model_version, json.outputs[0].data], ["double", "1", [2, 4, 6]]);
  for (const answer of [
    await server.get("/v2/models/double/versions/2"),
    await server.get("/v2/models/double/versions/2/ready"),
    await server.post("/v2/models/double/versions/latest/infer", body),
  ]) {
    assert.equal(answer.status, 404);
    assert.match(answer.json.error, /double has no version "(2|latest)"; there is "1"/);
  }
});

test("binary tensors are read wherever they stand in the body", async (t) => {
  const server = await serving(t, [doubling()]);
  const inputs = [{ name: "input", shape: [2, 3], datatype: "FP32", parameters: { binary_data_size: 24 } }];
  // The JSON grows by a byte each time, so that the tensor starts at every remainder of 8.
  for (let length = 0; length < 9; length++) {
    const body = { id: "x".repeat(length), inputs };
    const { status, json } = await postBinary(server, infer, body, floats(1, 2, 3, 4, 5, 6));
    assert.equal(status, 200);
    assert.deepEqual(json.outputs[0].data, [2, 4, 6, 8, 10, 12]);
  }
});

test("a binary body above MAX_BODY_BYTES is a 413, announced or not", async (t) => {
  const server = await serving(t, [doubling()], { maxBodyBytes: 1000 });
  const inputs = [{ name: "input", shape: [100, 3], datatype: "FP32", parameters: { binary_data_size: 1200 } }];
  const announced = await postBinary(server, infer, { inputs }, Buffer.alloc(1200));
  assert.equal(announced.status, 413);
  assert.match(announced.json.error, /1000 bytes \(MAX_BODY_BYTES\)/);
  const chunked = await fetch(`${server.url}/v2/models/double/infer`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream", "inference-header-content-length": "10" },
    body: new Blob([new Uint8Array(1200)]).stream(),
    duplex: "half",
  } as RequestInit);
  assert.equal(chunked.status, 413);
});
