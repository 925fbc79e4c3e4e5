import assert from "node:assert/strict";
import { test } from "node:test";
import { grpcServing } from "../grpc-serving.js";
import { serving } from "../serving.js";
import { embeddingTexts, judgingTexts, rankingPairs } from "../text-models.js";

const long = "more than nine";
const pairs = {
  ...rankingPairs,
  run: (items: { text: string }[]) =>
    items.map(({ text }) => ({ score: text.length, tokens: 3, truncated: text.length > 9 })),
};

/** A request of three texts to each route, or of one where it takes no more: all but the first are too long. */
const requests: readonly (readonly [path: string, body: object, truncated: string, warning?: RegExp])[] = [
  ["/infer", { inputs: ["a", long, long] }, "2"],
  ["/infer/embed", { input: long }, "1"],
  ["/v1/embeddings", { input: ["a", long, long] }, "2"],
  ["/v1/embed", { texts: ["a", long, long] }, "2", /^2 texts were truncated, the first of them texts\[1\]\.$/],
  ["/v2/embed", { texts: ["a", long] }, "1", /^texts\[1\] was truncated\.$/],
  ["/embed", { inputs: ["a", long, long] }, "2"],
  ["/predict", { inputs: [["a"], [long], [long]] }, "2"],
  ["/rerank", { model: "embed", query: "a", texts: [long, long] }, "2"],
  ["/rerank", { model: "embed", query: "a", documents: [long] }, "1", /^documents\[0\] was truncated/],
  ["/v1/rerank", { model: "embed", query: long, documents: ["a", "b"] }, "1", /^query was truncated/],
  ["/v2/rerank", { model: "pairs", query: "a", documents: ["a", { text: long }] }, "1", /^documents\[1\]\.text was/],
  ["/api/embed", { model: "embed", input: ["a", long, long] }, "2"],
  ["/api/embeddings", { model: "embed", prompt: long }, "1"],
  ["/vectors", { texts: ["a", long, long] }, "2"],
  [
    "/v2/models/embed/infer",
    { inputs: [{ name: "text", datatype: "BYTES", shape: [3], data: ["a", long, long] }] },
    "2",
  ],
];

test("every route says how many texts were cut, Cohere's also which; a reply without one says nothing", async (t) => {
  const { post, call } = await grpcServing(t, [embeddingTexts, judgingTexts, pairs]);
  for (const [path, body, truncated, warning] of requests) {
    const { status, text, headers, json } = await post(path, body);
    assert.deepEqual([status, headers.get("x-sheaf-truncated")], [200, truncated], `${path}: ${text}`);
    assert.equal(json.meta?.warnings?.length, warning && 1, path);
    if (warning) assert.match(json.meta.warnings[0], warning, path);
    const short = await post(path, JSON.parse(JSON.stringify(body).replaceAll(long, "short")));
    assert.deepEqual([short.status, short.headers.get("x-sheaf-truncated")], [200, null], path);
    assert.equal(short.json.meta?.warnings, undefined, path);
  }
  for (const [text, truncated] of [
    [long, { x_sheaf_truncated: "2" }],
    ["short", {}],
  ] as const) {
    const contents = { bytes_contents: [text, "a", text].map((one) => Buffer.from(one)) };
    const inputs = [{ name: "text", datatype: "BYTES", shape: [3], contents }];
    const { reply } = await call("ModelInfer", { model_name: "embed", inputs });
    const told = Object.entries<any>(reply.parameters).map(([name, { int64_param }]) => [name, int64_param]);
    assert.deepEqual(Object.fromEntries(told), truncated);
  }
});

test("truncate: false refuses a text that is too long, by its path; by default it is cut", async (t) => {
  const { post } = await serving(t, [embeddingTexts, judgingTexts, pairs]);
  for (const [path, body, at] of [
    ["/embed", { inputs: long }, "inputs"],
    ["/embed", { inputs: ["a", long] }, "inputs[1]"],
    ["/predict", { inputs: [["a"], [long]] }, "inputs[1]"],
    ["/rerank", { query: "q", texts: ["a", long] }, "texts[1]"],
    ["/rerank", { query: "q", texts: ["a", long], model: "embed" }, "texts[1]"],
    ["/rerank", { query: long, texts: ["a"], model: "embed" }, "query"],
  ] as const) {
    assert.equal((await post(path, body)).status, 200, path);
    const { status, json } = await post(path, { ...body, truncate: false });
    assert.equal(status, 422, path);
    const message = String(json.detail ?? json.error);
    assert.ok(message.startsWith(`${at} has more than `) && message.includes("and truncate is false"), message);
    if (path !== "/rerank") assert.equal(json.error_type, "Validation");
  }
});
