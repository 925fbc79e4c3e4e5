import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { changedValues } from "../../dist/http/bodies/changed-values.js";
import { JsonBounds, mayExceed } from "../../dist/http/bodies/json-bounds.js";
import { costs } from "../../dist/shared/costs.js";
import { embeddingApi, proxying } from "../proxy/proxying.js";
import { grpcServing } from "./grpc-serving.js";
import { post } from "../asking.js";
import { echo, measuringTexts, serving } from "./serving.js";

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const keys = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join()}}`;
const asItem = (value: string): string => `{"input":${value}}`;
/** A request of `/v2` whose one text is this. */
const asText = (text: string): string => JSON.stringify({ inputs: [{ name: "input", datatype: "BYTES", shape: [1], data: [text] }] }); // prettier-ignore
/** The same in gRPC, in contents or raw. */
const inGrpc = (text: string, isRaw: boolean): object => {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  const input = { name: "input", datatype: "BYTES", shape: [1] };
  return isRaw
    ? { model_name: "echo", inputs: [input], raw_input_contents: [Buffer.concat([length, bytes])] }
    : { model_name: "echo", inputs: [{ ...input, contents: { bytes_contents: [bytes] } }] };
};

/** Small, so that small bodies reach them. */
const bounded = (jsonKeys: number, jsonArrays: number): void => void Object.assign(costs, { jsonKeys, jsonArrays });
beforeEach(() => bounded(600, 1000));

const tooMuch = [
  { name: "too deep", value: nested(costs.jsonDepth + 1), message: /nested at most 500 deep/ },
  { name: "too deep, and not JSON", value: "[".repeat(1_000_000), message: /nested at most 500 deep/ },
  { name: "too deep, objects", value: '{"a":'.repeat(1000), message: /nested at most 500 deep/ },
  { name: "too many keys", value: keys(601), message: /at most 600 keys/ },
  { name: "too many keys of several objects", value: `[${Array(601).fill('{"a" :1}').join()}]`, message: /600 keys/ },
  { name: "too many arrays", value: `[${Array(1000).fill("[]").join()}]`, message: /1000 arrays and objects/ }, // prettier-ignore
  { name: "too many objects", value: `[${Array(1000).fill("{}").join()}]`, message: /1000 arrays and objects/ },
];

for (const { name, value, message } of tooMuch) {
  test(`a body with ${name} is refused before it is parsed, in every route, gRPC and the proxy`, async (t) => {
    const server = await grpcServing(t, [echo, measuringTexts()]);
    const posts: [path: string, body: string][] = [
      ["/infer", value],
      ["/infer", `{"inputs":[1,${value}]}`],
      ["/v1/embeddings", `{"model":"measure","input":${value}}`],
      ["/rerank", `{"query":"a","texts":${value}}`],
      ["/v1/rerank", `{"query":"a","documents":${value}}`],
      ["/embed", `{"inputs":${value}}`],
      ["/predict", `{"inputs":${value}}`],
      ["/v2/embed", `{"texts":${value}}`],
      ["/api/embed", `{"model":"measure","input":"a","options":${value}}`],
      ["/vectors", `{"text":"a","config":${value}}`],
      ["/v2/models/echo/infer", `{"inputs":${value}}`],
      ["/v2/models/echo/infer", asText(value)],
      ["/v2/repository/index", `{"ready":${value}}`],
    ];
    for (const [path, body] of posts) {
      const { status, text } = await server.post(path, body);
      assert.equal(status, 422, `${path}: ${text.slice(0, 200)}`);
      assert.match(text, message, path);
    }
    for (const isRaw of [false, true]) {
      const { status, details } = await server.call("ModelInfer", inGrpc(value, isRaw));
      assert.equal(status, "INVALID_ARGUMENT");
      assert.match(details, message);
      assert.ok(details.startsWith(isRaw ? "raw_input_contents[0][0] must" : "inputs[0].contents.bytes_contents[0] must"), details); // prettier-ignore
    }
    const api = await embeddingApi(t);
    const proxy = await proxying(t, api.baseURL);
    const reply = await post(`${proxy.url}/v1/embeddings`, `{"model":"tiny","input":"a","x":${value}}`);
    assert.equal(reply.status, 422);
    assert.match(reply.text, message);
    assert.equal(api.requests.length, 0);
  });
}

test("what stands in texts counts for nothing, and bodies at the bounds are answered", async (t) => {
  const server = await serving(t, [echo]);
  const values = [nested(costs.jsonDepth - 1), keys(599), `[${Array(998).fill("[]").join()}]`, JSON.stringify('[{":\\"'.repeat(1000)), '"\\\\"', '["\\\\",{"\\"":1}]']; // prettier-ignore
  for (const value of values) {
    const { status, text } = await server.post("/infer", asItem(value));
    assert.equal(status, 200, text.slice(0, 200));
    assert.ok(text.includes(`"output":${JSON.stringify(JSON.parse(value))}`), value.slice(0, 50));
  }
});

test("keys and arrays are counted exactly beside numbers, texts and space, wherever the bytes begin", () => {
  const unit = String.raw`{"a" : [0.5,-1.25e-7,[3.0]] ,"[{:\\":"\"]:{","b":0.125,"long":"${"x,:[".repeat(20)}","c":[0.1,{"d":1.5}]}`;
  const text = `[${Array(300).fill(unit).join()}]`;
  const [keys, arrays] = [300 * 6, 300 * 5 + 1];
  assert.equal(Object.keys(JSON.parse(unit) as object).length, 5);
  for (let offset = 0; offset < 4; offset++) {
    const bytes = Buffer.from(new ArrayBuffer(text.length + offset), offset);
    bytes.write(text);
    bounded(keys, arrays);
    assert.ok(mayExceed(bytes));
    new JsonBounds().check(bytes, "");
    for (const less of [[keys - 1, arrays] as const, [keys, arrays - 1] as const]) {
      bounded(...less);
      assert.throws(() => new JsonBounds().check(bytes, ""), /must have at most/);
    }
  }
});

test("a body of few arrays, objects and keys is parsed without a scan", () => {
  bounded(100_000, 1_000_000);
  const few = {
    inputs: [{ shape: [100_000], data: Array(100_000).fill(0.123456) }],
    texts: Array(1000).fill("a text"),
  };
  assert.equal(mayExceed(Buffer.from(JSON.stringify(few))), false);
  assert.equal(mayExceed(Buffer.from(nested(costs.jsonDepth + 1))), true);
});

test("the texts of one request share the bounds", async (t) => {
  const server = await serving(t, [echo]);
  const body = { inputs: [{ name: "input", datatype: "BYTES", shape: [2], data: [keys(301), keys(300)] }] };
  const { status, text } = await server.post("/v2/models/echo/infer", body);
  assert.equal(status, 422);
  assert.match(text, /inputs\[0\]\.data\[1\] must have at most 600 keys/);
});

const changed = [
  { value: "1e400", message: /must be a finite number, got 1e400/ },
  { value: `-${"9".repeat(400)}`, message: /must be a finite number, got -9{39}…/ },
  { value: "9007199254740993", message: /must be an integer that a 64-bit float holds \(up to 2\^53\), got 9007199254740993/ }, // prettier-ignore
  { value: "-12345678901234567890", message: /must be an integer that/ },
  { value: String.raw`"\ud800"`, message: /Unicode text without half of a surrogate pair/ },
  { value: String.raw`"a\uDC00\ud83d"`, message: /Unicode text without half of a surrogate pair/ },
];

for (const { value, message } of changed) {
  test(`${value.slice(0, 24)}, which would be another value in JavaScript, is refused with its path everywhere`, async (t) => {
    const server = await grpcServing(t, [echo]);
    const item = `{"a":[0,{"b":${value}}]}`;
    const bodies: [path: string, body: string, param: string][] = [
      ["/infer", item.replace("{", '{"input":{').concat("}"), "input.a[1].b"],
      ["/infer", `[true,${value}]`, "[1]"],
      ["/infer", value, "The body"],
    ];
    for (const [path, body, param] of bodies) {
      const { status, json: reply, text } = await server.post(path, body);
      assert.equal(status, 422, text);
      assert.ok(reply.detail.startsWith(`${param} must`), reply.detail);
      assert.match(reply.detail, message);
    }
    const several = await server.post("/infer", `{"inputs":[1,${item},2,${item}]}`);
    assert.deepEqual([several.json.outputs[0], several.json.outputs[2]], [1, 2]);
    for (const index of [1, 3]) {
      const { error } = several.json.outputs[index];
      assert.ok(error.message.startsWith(`inputs[${index}].a[1].b must`), error.message);
      assert.match(error.message, message);
    }
    const v2 = await server.post("/v2/models/echo/infer", asText(item));
    assert.equal(v2.status, 422);
    assert.match(v2.json.error, message);
    assert.ok(v2.json.error.startsWith("inputs[0].data[0].a[1].b must"), v2.json.error);
    for (const isRaw of [false, true]) {
      const { status, details } = await server.call("ModelInfer", inGrpc(item, isRaw));
      assert.equal(status, "INVALID_ARGUMENT");
      assert.match(details, message);
      assert.ok(details.includes("[0].a[1].b must"), details);
    }
    const api = await embeddingApi(t);
    const proxy = await proxying(t, api.baseURL, { cacheMaxBytes: 1_000_000 });
    const body = `{"model":"tiny","input":"a","extra":{"n":[${value}]}}`;
    const { status, json } = await post(`${proxy.url}/v1/embeddings`, body);
    assert.equal(status, 422);
    const { detail } = json;
    assert.ok(detail.startsWith("extra.n[0] must"), detail);
    assert.match(detail, message);
    assert.equal(api.requests.length, 0);
  });
}

test("halves of surrogate pairs are refused as texts too, in every route that takes texts, and as keys", async (t) => {
  const server = await serving(t, [measuringTexts(), echo]);
  const half = String.raw`"a\ud800"`;
  const bodies: [path: string, body: string, param: string][] = [
    ["/infer", half, "The body"],
    ["/v1/embeddings", `{"model":"measure","input":["b",${half}]}`, "input[1]"],
    ["/rerank", `{"query":"a","texts":["b",${half}]}`, "texts[1]"],
    ["/v1/rerank", `{"query":"a","documents":["b",${half}]}`, "documents[1]"],
    ["/v2/embed", `{"texts":["b",${half}]}`, "texts[1]"],
    ["/infer/echo", `{"input":{${half}:1}}`, "input."],
  ];
  for (const [path, body, param] of bodies) {
    const { status, json: reply } = await server.post(path, body);
    assert.equal(status, 422);
    assert.ok(reply.detail.startsWith(param) && reply.detail.includes("half of a surrogate pair"), reply.detail);
  }
  for (const [model, name] of [
    ["measure", "text"],
    ["echo", "input"],
  ] as const) {
    const body = `{"inputs":[{"name":"${name}","datatype":"BYTES","shape":[1],"data":[${half}]}]}`;
    const { status, json: reply } = await server.post(`/v2/models/${model}/infer`, body);
    assert.equal(status, 422);
    assert.match(reply.error, /^inputs\[0\]\.data\[0\] must be Unicode text/);
  }
});

test("numbers and texts that JavaScript holds are kept, whatever they look like", async (t) => {
  const server = await serving(t, [echo]);
  const kept = ["9007199254740992", "123456789012345680000", "0.12345678901234567", "-1.2345678901234567e-5", "1e308", "1e-400", "5e+22", String.raw`"\ud83d\ude00"`, String.raw`"\\ud800 1e999 \\"`, '"9007199254740993"', '{"1e999":"12345678901234567890"}', "[0.30000000000000004,1234567890123456]"]; // prettier-ignore
  for (const value of kept) {
    const { status, json: reply, text } = await server.post("/infer", asItem(value));
    assert.equal(status, 200, text);
    assert.deepEqual(reply.output, JSON.parse(value));
  }
});

test("of wrong values only the first of each input is looked at, and none after the last that counts", () => {
  // To read this text throws another error: it is no JSON.
  const unread = String.raw`"\ud800\uzz"`;
  const problemsOf = (text: string, mostElements: number): [element: string, message: string][] => {
    const found = changedValues(Buffer.from(text), Infinity, "", mostElements);
    return [...found].map(([element, { message }]) => [element, message.replace(/ must .*/, "")]);
  };
  const whole = [`[0,1e999,${unread}]`, `{"a":{"b":1e999,"c":${unread}}}`, `{"inputs":[1e999,${unread}]}`];
  for (const text of whole)
    assert.throws(() => problemsOf(text, 0), /1\]|a\.b|inputs\[0\] must be a finite number/, text);
  const inputs = `{"inputs":[0,{"a":[1e999,${unread}],${unread}:1},[[2]],1e999`;
  const first = [["inputs[1]", "inputs[1].a[0]"], ["inputs[3]", "inputs[3]"]]; // prettier-ignore
  assert.deepEqual(problemsOf(`${inputs}]}`, 2), first);
  assert.throws(() => problemsOf(`${inputs},${unread}]}`, 1), /^Problem: inputs\[1\]\.a\[0\] must/);
  assert.throws(
    () => problemsOf(`${inputs}],"other":1e999,"more":[${unread}]}`, 2),
    /^Problem: inputs\[1\]\.a\[0\] must/,
  );
});
