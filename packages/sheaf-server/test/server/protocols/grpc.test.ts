import assert from "node:assert/strict";
import { test } from "node:test";
import { once } from "node:events";
import type { ModelDefinition } from "../../../dist/index.js";
import { until } from "../../asking.js";
import { floatsOf, floatsRequest, grpcServing, type GrpcServing } from "../grpc-serving.js";
import { doubling, gated, measuringTexts } from "../serving.js";

/** Gives back what it gets, one tensor of each datatype. */
const datatypes = ["FP32", "FP64", "INT64", "UINT64", "INT32", "UINT32", "INT16", "UINT16", "INT8", "UINT8", "BOOL", "BYTES"] as const; // prettier-ignore
const tensors = datatypes.map((datatype) => ({ name: datatype, datatype, shape: [2] }));
const echo: ModelDefinition = {
  name: "echo",
  input: { kind: "tensors", tensors },
  output: { kind: "tensors", tensors },
  run: (items: unknown[]) => items,
};

const untilQueued = ({ models }: GrpcServing, count: number): Promise<void> =>
  until(() => models.all[0]!.stats().queued === count);

/** Two elements of each, as typed contents and as their bytes. */
const elements: Readonly<Record<(typeof datatypes)[number], { contents: object; bytes: Buffer }>> = {
  FP32: { contents: { fp32_contents: [1.5, -2] }, bytes: bytesOf(Float32Array.of(1.5, -2)) },
  FP64: { contents: { fp64_contents: [0.1, -1e300] }, bytes: bytesOf(Float64Array.of(0.1, -1e300)) },
  INT64: { contents: { int64_contents: ["-9223372036854775808", "9007199254740993"] }, bytes: bytesOf(BigInt64Array.of(-9223372036854775808n, 9007199254740993n)) },
  UINT64: { contents: { uint64_contents: ["18446744073709551615", "1"] }, bytes: bytesOf(BigUint64Array.of(18446744073709551615n, 1n)) },
  INT32: { contents: { int_contents: [-2147483648, 7] }, bytes: bytesOf(Int32Array.of(-2147483648, 7)) },
  UINT32: { contents: { uint_contents: [4294967295, 7] }, bytes: bytesOf(Uint32Array.of(4294967295, 7)) },
  INT16: { contents: { int_contents: [-32768, 7] }, bytes: bytesOf(Int16Array.of(-32768, 7)) },
  UINT16: { contents: { uint_contents: [65535, 7] }, bytes: bytesOf(Uint16Array.of(65535, 7)) },
  INT8: { contents: { int_contents: [-128, 7] }, bytes: bytesOf(Int8Array.of(-128, 7)) },
  UINT8: { contents: { uint_contents: [255, 7] }, bytes: bytesOf(Uint8Array.of(255, 7)) },
  BOOL: { contents: { bool_contents: [true, false] }, bytes: bytesOf(Uint8Array.of(1, 0)) },
  BYTES: { contents: { bytes_contents: [Buffer.from("東京"), Buffer.from("")] }, bytes: Buffer.from("\x06\0\0\0東京\0\0\0\0") },
}; // prettier-ignore

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

const inputs = datatypes.map((datatype) => ({ name: datatype, datatype, shape: [1, 2] }));

test("every question over gRPC has the answer that it has over HTTP", async (t) => {
  const server = await grpcServing(t, [doubling(), measuringTexts()]);
  const reply = async (method: string, message: object = {}) => (await server.call(method, message)).reply;
  const json = async (path: string) => (await server.get(path)).json;
  assert.deepEqual(await reply("ServerLive"), { live: true });
  assert.deepEqual(await reply("ServerReady"), { ready: true });
  assert.deepEqual(await reply("ServerMetadata"), await json("/v2"));
  assert.deepEqual(await reply("ModelReady", { name: "double" }), { ready: true });
  const { inputs: described, ...metadata } = await reply("ModelMetadata", { name: "double", version: "1" });
  const { inputs: expected, outputs, ...ofHttp } = await json("/v2/models/double");
  assert.deepEqual(described, [{ ...expected[0], shape: ["-1", "3"] }]);
  assert.deepEqual({ ...metadata, outputs: [] }, { ...ofHttp, outputs: [] });
  assert.equal(outputs[0].name, metadata.outputs[0].name);

  const { config } = await reply("ModelConfig", { name: "double" });
  const ofConfig = await json("/v2/models/double/config");
  assert.equal(config.max_batch_size, ofConfig.max_batch_size);
  assert.deepEqual(config.input, [{ ...ofConfig.input[0], dims: ["3"] }]);
  assert.deepEqual(config.instance_group, ofConfig.instance_group);
  const { max_queue_delay_microseconds: delay, default_queue_policy: policy } = config.dynamic_batching;
  assert.equal(Number(delay), ofConfig.dynamic_batching.max_queue_delay_microseconds);
  assert.equal(policy.max_queue_size, ofConfig.dynamic_batching.default_queue_policy.max_queue_size);

  const index = (await server.post("/v2/repository/index", {})).json;
  assert.deepEqual(await reply("RepositoryIndex"), { models: index });
  assert.equal((await reply("RepositoryIndex", { ready: true })).models.length, 2);

  await server.call("ModelInfer", floatsRequest("double", 1, 2, 3, 4, 5, 6));
  const { model_stats: stats } = await reply("ModelStatistics", { name: "double" });
  assert.deepEqual([stats.length, stats[0].inference_count, stats[0].inference_stats.success.count], [1, "2", "1"]);
  assert.equal((await reply("ModelStatistics")).model_stats.length, 2);
});

test("without keys the calls of a connection have one account: inputs that keep breaking runs then run alone", async (t) => {
  const runs: number[][] = [];
  const run = (items: Float32Array[]): Float32Array[] => {
    runs.push(items.map(([first]) => first!));
    if (items.some(([first]) => first! > 100)) throw new Error("too large");
    return items;
  };
  const server = await grpcServing(t, [{ ...doubling(), run }]);
  const infer = async (...firsts: number[]): Promise<unknown> =>
    server.call("ModelInfer", floatsRequest("double", ...firsts.flatMap((first) => [first, 0, 0])));
  for (const broken of [101, 102, 103]) await infer(1, broken);
  runs.length = 0;
  await infer(1, 2);
  assert.deepEqual(runs, [[1], [2]]);
});

test("raw and typed contents of every datatype give the same bytes", async (t) => {
  const server = await grpcServing(t, [echo]);
  const typed = inputs.map((input) => ({ ...input, contents: elements[input.datatype].contents }));
  const raw = datatypes.map((datatype) => elements[datatype].bytes);
  for (const message of [{ inputs: typed }, { inputs, raw_input_contents: raw }]) {
    const { status, details, reply } = await server.call("ModelInfer", { model_name: "echo", id: "a", ...message });
    assert.equal(status, "OK", details);
    assert.deepEqual([reply.model_name, reply.model_version, reply.id], ["echo", "1", "a"]);
    assert.deepEqual(reply.outputs.map(({ name, datatype, shape }: any) => ({ name, datatype, shape })), inputs.map((input) => ({ ...input, shape: ["1", "2"] }))); // prettier-ignore
    for (const [i, datatype] of datatypes.entries())
      assert.deepEqual(reply.raw_output_contents[i], elements[datatype].bytes, datatype);
  }
  const { reply } = await server.call("ModelInfer", { model_name: "echo", inputs: typed, outputs: [{ name: "INT8" }] });
  assert.deepEqual(reply.outputs.map(({ name }: any) => name), ["INT8"]); // prettier-ignore
});

test("halves come as raw contents, and go back the same; typed contents have no place for them", async (t) => {
  const tensor = { name: "x", datatype: "FP16", shape: [2] } as const;
  const kind = { kind: "tensors", tensors: [tensor] } as const;
  const server = await grpcServing(t, [{ name: "halves", input: kind, output: kind, run: (items: object[]) => items }]);
  const inputs = [{ ...tensor, shape: [1, 2] }];
  const ask = (more: object): any => server.call("ModelInfer", { model_name: "halves", ...more });
  const bytes = Buffer.from(Uint16Array.of(0x3c00, 0xc000).buffer);
  const { status, reply } = await ask({ inputs, raw_input_contents: [bytes] });
  assert.deepEqual([status, reply.raw_output_contents[0]], ["OK", bytes]);
  const typed = [{ ...inputs[0], contents: { fp32_contents: [1, -2] } }];
  const refused = await ask({ inputs: typed });
  assert.deepEqual([refused.status, /raw_input_contents/.test(refused.details)], ["INVALID_ARGUMENT", true]);
  const infinite = await ask({ inputs, raw_input_contents: [Buffer.from(Uint16Array.of(0x3c00, 0x7c00).buffer)] });
  assert.deepEqual([infinite.status, /finite number/.test(infinite.details)], ["INVALID_ARGUMENT", true]);
});

test("what is wrong is said with the path of the wrong value, and nothing runs", async (t) => {
  const model = doubling();
  const server = await grpcServing(t, [model, echo, measuringTexts()], { maxTextChars: 10 });
  const good = floatsRequest("double", 1, 2, 3);
  const [input] = good.inputs;
  const only = (contents: object, datatype: string) => ({
    model_name: "echo",
    inputs: inputs.map((one) => ({ ...one, contents: one.name === datatype ? contents : elements[one.datatype].contents })),
  }); // prettier-ignore
  const text = (value: Buffer) => ({ model_name: "measure", inputs: [{ name: "text", datatype: "BYTES", shape: [1], contents: { bytes_contents: [value] } }] }); // prettier-ignore
  const wrong: [object, string, RegExp][] = [
    [{ ...good, model_name: "none" }, "NOT_FOUND", /no model "none"/],
    [{ ...good, model_version: "2" }, "NOT_FOUND", /no version "2"/],
    [{ ...good, raw_input_contents: [Buffer.alloc(11)] }, "INVALID_ARGUMENT", /raw_input_contents\[0\] must have 12 bytes/],
    [{ ...good, raw_input_contents: [Buffer.alloc(12), Buffer.alloc(1)] }, "INVALID_ARGUMENT", /one entry for each of the 1 inputs, got 2/],
    [{ ...good, raw_input_contents: [] }, "INVALID_ARGUMENT", /inputs\[0\]\.contents must hold 3 elements/],
    [{ ...good, inputs: [{ ...input, contents: { fp32_contents: [1, 2, 3] } }] }, "INVALID_ARGUMENT", /either contents or raw_input_contents/],
    [{ ...good, inputs: [{ ...input, shape: [1, 4] }] }, "INVALID_ARGUMENT", /inputs\[0\]\.shape must be \[-1, 3\]/],
    [{ ...good, inputs: [{ ...input, shape: ["9007199254740993", 3] }] }, "INVALID_ARGUMENT", /inputs\[0\]\.shape/],
    [{ ...good, inputs: [{ ...input, datatype: "FP64" }] }, "INVALID_ARGUMENT", /inputs\[0\]\.datatype must be FP32/],
    [{ ...good, inputs: [] , raw_input_contents: [] }, "INVALID_ARGUMENT", /inputs lacks input/],
    [{ ...good, outputs: [{ name: "none" }] }, "INVALID_ARGUMENT", /outputs\[0\]\.name must be one of output/],
    [{ ...good, parameters: { sequence_id: { int64_param: 7 } } }, "INVALID_ARGUMENT", /parameters\.sequence_id is not supported/],
    [{ ...good, parameters: { priority: { uint64_param: 9 } } }, "INVALID_ARGUMENT", /parameters\.priority must be 0, 1 or 2/],
    [{ ...good, inputs: [{ ...input, parameters: { shared_memory_region: { string_param: "x" } } }] }, "INVALID_ARGUMENT", /shared_memory_region is not supported/],
    [{ ...good, inputs: [{ ...input, parameters: { binary_data_size: { int64_param: 11 } } }] }, "INVALID_ARGUMENT", /binary_data_size must be 12, the bytes in raw_input_contents, got 11/],
    [{ ...good, inputs: [{ ...input, parameters: { binary_data_size: { int64_param: 12 } }, contents: { fp32_contents: [1, 2, 3] } }], raw_input_contents: [] }, "INVALID_ARGUMENT", /binary_data_size must be 0/],
    [floatsRequest("double", 1, NaN, 3), "INVALID_ARGUMENT", /raw_input_contents\[0\]\[1\] must be a finite number, got NaN/],
    [only({ fp32_contents: [1, Infinity] }, "FP32"), "INVALID_ARGUMENT", /fp32_contents\[1\] must be a finite number, got Infinity/],
    [only({ int_contents: [1, 128] }, "INT8"), "INVALID_ARGUMENT", /int_contents\[1\] must be an integer from -128 to 127, got 128/],
    [only({ fp64_contents: [1, 2] }, "FP32"), "INVALID_ARGUMENT", /contents of FP32 must be fp32_contents alone/],
    [only({ int_contents: [1, 2, 3] }, "INT16"), "INVALID_ARGUMENT", /must hold 2 elements, as its shape says, got more/],
    [only({ bytes_contents: [Buffer.of(255), Buffer.of()] }, "BYTES"), "INVALID_ARGUMENT", /bytes_contents\[0\] must be UTF-8/],
    [text(Buffer.from("longer than ten")), "INVALID_ARGUMENT", /at most 10 characters \(MAX_TEXT_CHARS\)/],
    [text(Buffer.from("")), "INVALID_ARGUMENT", /must be a text that is not empty/],
  ]; // prettier-ignore
  for (const [message, status, details] of wrong) {
    const ended = await server.call("ModelInfer", message);
    assert.equal(ended.status, status, ended.details);
    assert.match(ended.details, details);
  }
  assert.deepEqual([model.runs, model.items], [0, 0]);
  // KServe's client sends the length of the raw contents.
  for (const parameters of [{}, { binary_data_size: { int64_param: 12 } }])
    assert.equal((await server.call("ModelInfer", { ...good, inputs: [{ ...input, parameters }] })).status, "OK");
});

test("errors speak of metadata, deadlines and shapes as they were sent, not of HTTP", async (t) => {
  const model = gated();
  const server = await grpcServing(t, [model], { apiKey: "k" });
  const key = { authorization: "Bearer k" };
  const asking = async (shape: string[], metadata: Record<string, string> = key): Promise<string> => {
    const input = { name: "input", datatype: "FP32", shape, contents: { fp32_contents: [1, 2, 3] } };
    return (await server.call("ModelInfer", { model_name: model.name, inputs: [input] }, metadata)).details;
  };
  assert.equal(await asking(["-1", "3"]), "inputs[0].shape[0] must be a length, from 0 to 2^53 − 1, got -1.");
  assert.match(await asking(["1", String(2n ** 62n)]), /^inputs\[0\]\.shape\[1\] must .*, got 4611686018427387904\.$/);
  assert.equal(await asking(["1", "3"], {}), "Send the key as metadata, authorization: Bearer KEY.");
  assert.match(
    await asking(["1", "3"], { ...key, "x-sheaf-priority": "urgent" }),
    /^metadata x-sheaf-priority must be one of/,
  );
  const late = await asking(["1", "3"], { ...key, "x-request-timeout-ms": "1" });
  assert.match(late, /^No result within 1 ms: .* allow more time: the call's deadline, at most/);
  model.release();
});

test("a call's id comes back, or a new one; priority and deadline are taken from its metadata too", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const request = floatsRequest("double", 1, 2, 3);
  assert.equal((await server.call("ModelInfer", request, { "x-request-id": "mine" })).trailers["x-request-id"], "mine");
  assert.match(String((await server.call("ModelInfer", request)).trailers["x-request-id"]), /^[\da-f]{32}$/);
  const refused = await server.call("ModelInfer", request, { "x-sheaf-priority": "urgent", "x-request-id": "mine" });
  assert.deepEqual([refused.status, refused.trailers["x-request-id"]], ["INVALID_ARGUMENT", "mine"]);
  const late = await server.call("ModelInfer", request, { "x-request-timeout-ms": "0" });
  assert.match(late.details, /^metadata x-request-timeout-ms must be/);
  const asked = { priority: { int64_param: 2 }, timeout: { int64_param: 1_000_000 } };
  assert.equal((await server.call("ModelInfer", { ...request, parameters: asked })).status, "OK");
  const final = { triton_enable_empty_final_response: { bool_param: true } };
  const { reply } = await server.call("ModelInfer", { ...request, parameters: final });
  assert.equal(reply.parameters.triton_final_response.bool_param, true);
});

test("an item whose caller's gRPC deadline passes, or who cancels, does not run", async (t) => {
  const model = gated();
  const server = await grpcServing(t, [model], { maxBatchSize: 1 });
  const request = floatsRequest("gated", 1, 2, 3);
  const running = server.call("ModelInfer", request);
  await model.started;
  const late = await server.call("ModelInfer", request, {}, { deadline: Date.now() + 100 });
  assert.equal(late.status, "DEADLINE_EXCEEDED");
  await untilQueued(server, 0);
  const stream = server.stream();
  stream.on("error", () => undefined);
  stream.on("data", () => undefined);
  stream.write(request);
  await untilQueued(server, 1);
  stream.cancel();
  await untilQueued(server, 0);
  model.release();
  assert.equal((await running).status, "OK");
  const { items, fail } = server.models.all[0]!.statistics;
  assert.deepEqual([items, fail.count], [1, 2]);
});

test("a stream answers in the order of its requests, each with its own result or error", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const stream = server.stream();
  const replies: any[] = [];
  stream.on("data", (reply) => replies.push(reply));
  const count = 300;
  for (let i = 0; i < count; i++)
    stream.write({ ...floatsRequest("double", i, i, i), id: String(i), ...(i === 7 ? { model_name: "none" } : {}) });
  stream.end();
  await once(stream, "end");
  assert.equal(replies.length, count);
  for (const [i, { error_message: error, infer_response: reply }] of replies.entries()) {
    assert.equal(reply.id, String(i));
    if (i === 7) assert.match(error, /no model "none"/);
    else assert.deepEqual([error, floatsOf(reply)], ["", [2 * i, 2 * i, 2 * i]]);
  }
});

for (const [queueFullStatus, expected] of [
  [429, "RESOURCE_EXHAUSTED"],
  [503, "UNAVAILABLE"],
] as const)
  test(`a full queue is ${expected} with the time to come back where QUEUE_FULL_STATUS is ${queueFullStatus}`, async (t) => {
    const model = gated();
    const server = await grpcServing(t, [model], { maxBatchSize: 1, queueMaxSize: 1, queueFullStatus });
    const request = floatsRequest("gated", 1, 2, 3);
    const first = server.call("ModelInfer", request);
    await model.started;
    const second = server.call("ModelInfer", request);
    await untilQueued(server, 1);
    const refused = await server.call("ModelInfer", request);
    assert.equal(refused.status, expected);
    assert.match(refused.details, /The queue of gated is full/);
    assert.ok(Number(refused.trailers["retry-after-ms"]) >= 10);
    assert.equal(refused.trailers["grpc-retry-pushback-ms"], refused.trailers["retry-after-ms"]);
    model.release();
    assert.deepEqual([(await first).status, (await second).status], ["OK", "OK"]);
  });

test("a method that Sheaf does not have is UNIMPLEMENTED", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const path = "/inference.GRPCInferenceService/CudaSharedMemoryStatus";
  const code = await new Promise((resolve) => {
    const bytes = (value: Buffer) => value;
    server.client.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), (error) => resolve(error?.code));
  });
  assert.equal(code, 12);
});

test("calls are counted by method and status, a stream's requests each", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  await server.call("ModelInfer", floatsRequest("double", 1, 2, 3));
  await server.call("ModelInfer", floatsRequest("none", 1, 2, 3));
  const stream = server.stream();
  stream.on("data", () => undefined);
  for (let i = 0; i < 3; i++) stream.write(floatsRequest("double", 1, 2, 3));
  stream.end();
  await once(stream, "end");
  const route = (method: string) => `route="/inference.GRPCInferenceService/${method}"`;
  let text = "";
  while (!text.includes(`${route("ModelInfer")},status="NOT_FOUND"`)) ({ text } = await server.get("/metrics"));
  assert.ok(text.includes(`sheaf_requests_total{${route("ModelInfer")},status="OK"} 1\n`));
  assert.ok(text.includes(`sheaf_requests_total{${route("ModelInfer")},status="NOT_FOUND"} 1\n`));
  assert.ok(text.includes(`sheaf_requests_total{${route("ModelStreamInfer")},status="OK"} 3\n`));
  assert.ok(text.includes(`sheaf_request_seconds_count{${route("ModelInfer")}} 2\n`));
});
