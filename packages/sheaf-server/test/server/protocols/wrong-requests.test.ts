import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../../dist/index.js";
import type { Reply } from "../../asking.js";
import { doubling, gated, serving } from "../serving.js";
import { embeddingTexts, judgingTexts, rankingPairs, tokenVectors } from "../text-models.js";

/** A good request of each route of other services, and the field of its texts. */
const routes: readonly { path: string; body: Record<string, unknown>; field: string; form: keyof typeof messageOf }[] =
  [
    { path: "/embed", body: { inputs: ["a"] }, field: "inputs", form: "tei" },
    { path: "/embed_all", body: { inputs: ["a"] }, field: "inputs", form: "tei" },
    { path: "/predict", body: { inputs: [["a"]] }, field: "inputs", form: "tei" },
    { path: "/v1/embed", body: { texts: ["a"] }, field: "texts", form: "message" },
    { path: "/v2/embed", body: { texts: ["a"] }, field: "texts", form: "message" },
    { path: "/rerank", body: { query: "a", texts: ["a"] }, field: "texts", form: "message" },
    { path: "/rerank", body: { query: "a", documents: ["a"] }, field: "documents", form: "message" },
    { path: "/v1/rerank", body: { query: "a", documents: ["a"] }, field: "documents", form: "message" },
    { path: "/v2/rerank", body: { query: "a", documents: ["a"] }, field: "documents", form: "message" },
    { path: "/api/embed", body: { model: "embed", input: ["a"] }, field: "input", form: "text" },
    { path: "/api/embeddings", body: { model: "embed", prompt: "a" }, field: "prompt", form: "text" },
    { path: "/vectors", body: { texts: ["a"] }, field: "texts", form: "text" },
  ];

/** Where the clients of a route look for the message. */
const messageOf = {
  tei: ({ json }: Reply): string => {
    assert.deepEqual(Object.keys(json), ["error", "error_type"]);
    return json.error;
  },
  message: ({ json }: Reply): string => {
    assert.deepEqual([json.detail, json.error.message], [json.message, json.message]);
    return json.message;
  },
  text: ({ json }: Reply): string => {
    assert.deepEqual(Object.keys(json), ["error"]);
    return json.error;
  },
};

const models = [embeddingTexts, judgingTexts, rankingPairs, tokenVectors, doubling()];

test("every route of another service answers a wrong request with its status, in the form that its clients read", async (t) => {
  const settings = { apiKey: "key", maxInputs: 2, maxBodyBytes: 1000, maxTextChars: 20 };
  const server = await serving(t, models, settings);
  const key = { authorization: "Bearer key" };
  for (const { path, body, field, form } of routes) {
    await t.test(`${path}, ${field}`, async () => {
      const post = (sent: unknown, headers: Record<string, string> = key): Promise<Reply> =>
        server.post(path, sent, headers);
      const isText = typeof body[field] === "string";
      const texts = (text: unknown): unknown => (isText ? text : path === "/predict" ? [[text]] : [text]);
      const cases: [Reply, number, RegExp][] = [
        [await post(body), 200, /^$/],
        [await post("{"), 400, /not JSON/],
        [await post(body, {}), 401, /Send the key/],
        [await post({ ...body, model: "none" }), 404, /no model "none"/],
        [await server.get(path, key), 405, /only POST/],
        [await post({ ...body, [field]: texts("x".repeat(1200)) }), 413, /larger than 1000 bytes/],
        [await post(body, { ...key, "content-type": "text/plain" }), 415, /application\/json/],
        [await post({ ...body, colour: "red" }), 422, /"colour" is not known here/],
        [await post({ ...body, [field]: texts("") }), 422, /must be .*not empty/],
        [await post({ ...body, [field]: texts(7) }), 422, /must be/],
        [await post({ ...body, [field]: texts("x".repeat(21)) }), 422, /at most 20 characters/],
        [await post({ ...body, [field]: undefined }), 422, /must be/],
        [await post({ ...body, model: "double" }), 422, /double (?:makes|gives|cannot|does not)/],
        [await post({ ...body, model: 7 }), 422, /model must be the name of a model/],
        [await post(body, { ...key, "x-request-timeout-ms": "soon" }), 422, /X-Request-Timeout-Ms/],
      ];
      if (!isText) {
        const many = Array(3).fill((body[field] as unknown[])[0]);
        cases.push([await post({ ...body, [field]: [] }), 422, /not empty|must be a text/]);
        cases.push([await post({ ...body, [field]: many }), 422, /at most 2 /]);
      }
      for (const [reply, status, message] of cases) {
        assert.equal(reply.status, status, reply.text);
        if (status !== 200) assert.match(messageOf[form](reply), message);
      }
    });
  }
});

const stuck = (): ModelDefinition[] =>
  [embeddingTexts, judgingTexts, tokenVectors].map((model) => ({ ...model, run: gated().run }));

test("a full queue and a deadline that passes answer in the same forms", async (t) => {
  const server = await serving(t, stuck(), { queueMaxSize: 2, maxBatchSize: 1 });
  const headers = { "x-request-timeout-ms": "1" };
  for (const { path, body, form } of routes) {
    const late = await server.post(path, body, headers);
    assert.equal(late.status, 504, late.text);
    assert.match(messageOf[form](late), /No result within 1 ms/);
  }
  const held = [
    server.post("/embed", { inputs: ["a", "b"] }),
    server.post("/predict", { inputs: [["a"], ["b"]] }),
    server.post("/embed_all", { inputs: ["a", "b"] }),
  ];
  while (server.models.all.some((model) => model.stats().queued < 2))
    await new Promise((resolve) => setImmediate(resolve));
  for (const { path, body, form } of routes) {
    const full = await server.post(path, body);
    assert.equal(full.status, 429, full.text);
    assert.ok(Number(full.headers.get("retry-after")) >= 1);
    assert.match(messageOf[form](full), /The queue of (?:embed|judge|tokens) is full/);
  }
  await server.models.close(0);
  for (const reply of await Promise.all(held)) assert.equal(reply.status, 503);
});

test("a draining server answers in the same forms", async (t) => {
  const server = await serving(t, stuck());
  const held = server.post("/embed", { inputs: ["a", "b"] });
  while (server.models.all[0]!.stats().inFlight === 0) await new Promise((resolve) => setImmediate(resolve));
  const closing = server.models.close(0);
  for (const { path, body, form } of routes) {
    const draining = await server.post(path, body);
    assert.equal(draining.status, 503, draining.text);
    assert.match(messageOf[form](draining), /shutting down/);
  }
  await closing;
  assert.equal((await held).status, 503);
});
