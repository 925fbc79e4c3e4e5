import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { BatcherError } from "sheaf";
import { httpStatusOf } from "sheaf/internal/http";
import type { ModelDefinition } from "../../dist/index.js";
import { problemOf, statusOfCode, type ProblemCode } from "../../dist/problems/problem.js";
import type { Settings } from "../../dist/settings/settings.js";
import { until, type Reply } from "../asking.js";
import { doubling, fronts, gated, measuringTexts, serving } from "./serving.js";

/** Every error is a problem document with OpenAI's `error` inside; the request id is in body and header. */
function assertProblem(
  { status, headers, json }: Reply,
  expected: { status: number; code: string; message: RegExp; param?: string },
): void {
  assert.equal(status, expected.status, JSON.stringify(json));
  assert.match(headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.equal(json.status, expected.status);
  assert.equal(json.type, `urn:sheaf:error:${expected.code}`);
  assert.ok(json.title.length > 0);
  assert.match(json.detail, expected.message);
  assert.equal(json.error.message, json.detail);
  assert.equal(json.error.code, expected.code);
  assert.ok(json.error.type.endsWith("_error"));
  assert.equal(json.error.param, expected.param ?? null);
  assert.equal(json.request_id, headers.get("x-request-id"));
}

const wrongRequests: readonly {
  name: string;
  path?: string;
  body?: unknown;
  headers?: Record<string, string>;
  status: number;
  code: ProblemCode;
  message: RegExp;
  param?: string;
}[] = [
  { name: "not JSON", body: "{nope", status: 400, code: "NOT_JSON", message: /not JSON: .*position 1/ },
  { name: "a literal NaN", body: "[NaN,1,2]", status: 400, code: "NOT_JSON", message: /not JSON/ },
  { name: "no body", body: "", status: 400, code: "NOT_JSON", message: /empty; send JSON/ },
  { name: "a byte that is not UTF-8", body: Buffer.from([0x22, 0xff, 0x22]), status: 400, code: "NOT_JSON", message: /UTF-8/ },
  { name: "an infinite number", body: "[1,1e999,2]", status: 422, code: "INVALID_INPUT", message: /^\[1\] must be a finite float32 number, got Infinity/, param: "[1]" },
  { name: "a number too large for float32", body: [1, 2, 1e39], status: 422, code: "INVALID_INPUT", message: /got 1e\+39/, param: "[2]" },
  { name: "a wrong type", body: { input: "x" }, status: 422, code: "INVALID_INPUT", message: /^input must be an array of 3 numbers, got "x"/, param: "input" },
  { name: "a wrong length", body: { input: [1] }, status: 422, code: "INVALID_INPUT", message: /got an array of 1/, param: "input" },
  { name: "null", body: "null", status: 422, code: "INVALID_INPUT", message: /^The body must be an array of 3 numbers, got null/ },
  { name: "an unknown field", body: { input: [1, 2, 3], inptu: 1 }, status: 422, code: "INVALID_INPUT", message: /"inptu" is not known here; did you mean input\?/, param: "inptu" },
  { name: "input and inputs", body: { input: [1, 2, 3], inputs: [] }, status: 422, code: "INVALID_INPUT", message: /either/ },
  { name: "inputs that are not an array", body: { inputs: 7 }, status: 422, code: "INVALID_INPUT", message: /got 7/, param: "inputs" },
  { name: "no inputs", body: { inputs: [] }, status: 422, code: "INVALID_INPUT", message: /not empty/, param: "inputs" },
  { name: "more than MAX_INPUTS", body: { inputs: Array.from({ length: 11 }, () => [1, 2, 3]) }, status: 422, code: "INVALID_INPUT", message: /at most 10 \(MAX_INPUTS\)/, param: "inputs" },
  { name: "more than the queue can hold", body: { inputs: Array.from({ length: 9 }, () => [1, 2, 3]) }, status: 422, code: "INVALID_INPUT", message: /at most 8.*QUEUE_MAX_SIZE/, param: "inputs" },
  { name: "an empty text", path: "/infer/measure", body: '""', status: 422, code: "INVALID_INPUT", message: /not empty, got ""/ },
  { name: "a text of 1 MB", path: "/infer/measure", body: { input: "x".repeat(1_000_000) }, status: 422, code: "INVALID_INPUT", message: /at most 100000 characters \(MAX_TEXT_CHARS\), got "x{60}…" \(1000000 characters\)/, param: "input" },
  { name: "a body over the limit", body: "[" + " ".repeat(2_000_000) + "]", status: 413, code: "BODY_TOO_LARGE", message: /large/ },
  { name: "another content type", headers: { "content-type": "text/plain" }, body: "[1,2,3]", status: 415, code: "UNSUPPORTED_MEDIA_TYPE", message: /content-type: application\/json/ },
  { name: "another charset", headers: { "content-type": "application/json; charset=latin1" }, body: "[1,2,3]", status: 415, code: "UNSUPPORTED_MEDIA_TYPE", message: /UTF-8/ },
  { name: "a compressed body", headers: { "content-encoding": "gzip" }, body: "[1,2,3]", status: 415, code: "UNSUPPORTED_MEDIA_TYPE", message: /uncompressed/ },
  { name: "an unknown model", path: "/infer/other", body: [1, 2, 3], status: 404, code: "MODEL_NOT_FOUND", message: /no model "other"; served are: double, measure/, param: "model" },
  { name: "an unknown path", path: "/nowhere", body: [1], status: 404, code: "NOT_FOUND", message: /no \/nowhere/ },
  { name: "an unknown priority", headers: { "x-sheaf-priority": "high" }, body: [1, 2, 3], status: 422, code: "INVALID_INPUT", message: /one of immediate, interactive, bulk, got "high"/, param: "X-Sheaf-Priority" },
  { name: "a timeout that is none", headers: { "x-request-timeout-ms": "soon" }, body: [1, 2, 3], status: 422, code: "INVALID_INPUT", message: /milliseconds above 0/, param: "X-Request-Timeout-Ms" },
  { name: "a timeout above the server's", headers: { "x-request-timeout-ms": "25001" }, body: [1, 2, 3], status: 422, code: "INVALID_INPUT", message: /above 0 and at most 25000 \(REQUEST_TIMEOUT_MS\), got "25001"/, param: "X-Request-Timeout-Ms" },
  { name: "a timeout of many digits", headers: { "x-request-timeout-ms": "99999999999" }, body: [1, 2, 3], status: 422, code: "INVALID_INPUT", message: /at most 25000 \(REQUEST_TIMEOUT_MS\)/, param: "X-Request-Timeout-Ms" },
  { name: "embeddings without a text", path: "/v1/embeddings", body: { model: "measure" }, status: 422, code: "INVALID_INPUT", message: /^input is missing; it must be a text/, param: "input" },
  { name: "embeddings of an unknown model", path: "/v1/embeddings", body: { model: "ada", input: "x" }, status: 404, code: "MODEL_NOT_FOUND", message: /no model "ada"/, param: "model" },
  { name: "embeddings of a model that makes none", path: "/v1/embeddings", body: { model: "double", input: "x" }, status: 422, code: "INVALID_INPUT", message: /does not embed texts/, param: "model" },
  { name: "embeddings of tokens", path: "/v1/embeddings", body: { model: "measure", input: [1, 2] }, status: 422, code: "INVALID_INPUT", message: /measure does not take token ids\. .*check_embedding_ctx_length=False/, param: "input" },
  { name: "embeddings of several texts as tokens", path: "/v1/embeddings", body: { model: "measure", input: [[1, 2], [3]] }, status: 422, code: "INVALID_INPUT", message: /check_embedding_ctx_length=False/, param: "input" },
  { name: "a number among texts", path: "/v1/embeddings", body: { model: "measure", input: ["a", 1] }, status: 422, code: "INVALID_INPUT", message: /^input\[1\] must be a text, got 1/, param: "input[1]" },
  { name: "a user that is not a text", path: "/v1/embeddings", body: { model: "measure", input: "a", user: 5 }, status: 422, code: "INVALID_INPUT", message: /^user must be a text, got 5/, param: "user" },
  { name: "one empty text of several", path: "/v1/embeddings", body: { model: "measure", input: ["a", ""] }, status: 422, code: "INVALID_INPUT", message: /^input\[1\] must be a text that is not empty/, param: "input[1]" },
  { name: "embeddings of no texts", path: "/v1/embeddings", body: { model: "measure", input: [] }, status: 422, code: "INVALID_INPUT", message: /not empty/, param: "input" },
  { name: "another encoding", path: "/v1/embeddings", body: { model: "measure", input: "x", encoding_format: "int8" }, status: 422, code: "INVALID_INPUT", message: /"float" or "base64"/, param: "encoding_format" },
  { name: "other dimensions", path: "/v1/embeddings", body: { model: "measure", input: "x", dimensions: 64 }, status: 422, code: "INVALID_INPUT", message: /dimensions must be 2/, param: "dimensions" },
  { name: "an empty query", path: "/rerank", body: { query: "", texts: ["b"] }, status: 422, code: "INVALID_INPUT", message: /^query must be/, param: "query" },
  { name: "no query", path: "/rerank", body: { texts: ["b"] }, status: 422, code: "INVALID_INPUT", message: /^query/, param: "query" },
  { name: "raw_scores as a word", path: "/rerank", body: { query: "a", texts: ["b"], raw_scores: "yes" }, status: 422, code: "INVALID_INPUT", message: /^raw_scores must be/, param: "raw_scores" },
  { name: "truncate as a number", path: "/rerank", body: { query: "a", texts: ["b"], truncate: 1 }, status: 422, code: "INVALID_INPUT", message: /^truncate must be/, param: "truncate" },
  { name: "return_text as a word", path: "/rerank", body: { query: "a", texts: ["b"], return_text: "no" }, status: 422, code: "INVALID_INPUT", message: /^return_text must be/, param: "return_text" },
  { name: "a type that is asked for again and again", path: "/v2/embed", body: { texts: ["a"], embedding_types: Array(100_000).fill("float") }, status: 422, code: "INVALID_INPUT", message: /names each type once, got an array of 100000/, param: "embedding_types" },
]; // prettier-ignore

test("every wrong request gets its status, a problem document that says what to fix, and takes no queue space", async (t) => {
  const model = doubling();
  const server = await serving(t, [model, measuringTexts()], {
    maxInputs: 10,
    queueMaxSize: 8,
    maxBodyBytes: 1_500_000,
  });
  for (const { name, path = "/infer", body, headers, ...expected } of wrongRequests) {
    await t.test(name, async () => {
      const raw = Buffer.isBuffer(body) ? body : typeof body === "string" ? body : JSON.stringify(body);
      const response = await fetch(server.url + path, {
        method: "POST",
        body: raw as string,
        headers: { "content-type": "application/json", ...headers },
      });
      const reply = { status: response.status, headers: response.headers, text: "", json: await response.json() };
      assertProblem(reply, expected);
      assert.equal((await server.post("/infer", [1, 2, 3])).status, 200, "a good request right after");
    });
  }
  assert.equal(model.items, wrongRequests.length, "only the good requests ran");
});

test("a method that a path does not take gets 405 with Allow", async (t) => {
  const server = await serving(t, [doubling()]);
  const get = await server.get("/infer");
  assertProblem(get, { status: 405, code: "METHOD_NOT_ALLOWED", message: /GET, only POST/ });
  assert.equal(get.headers.get("allow"), "POST");
  // A path is found out before the body is looked at, and Node knows methods that Fastify reads a body of.
  for (const method of ["QUERY", "PUT", "DELETE"] as const) {
    const other = await fetch(`${server.url}/livez`, { method });
    assert.deepEqual([other.status, other.headers.get("allow")], [405, "GET, HEAD"], method);
  }
  const odd = await fetch(`${server.url}/nowhere`, { method: "POST", body: "x", headers: { "content-type": "a/b" } });
  assert.equal(odd.status, 404);
  const post = await server.post("/readyz", {});
  assertProblem(post, { status: 405, code: "METHOD_NOT_ALLOWED", message: /only GET, HEAD/ });
  assert.equal(post.headers.get("allow"), "GET, HEAD");
});

test("a path with a slash at its end is the same route", async (t) => {
  const server = await serving(t, [doubling(), measuringTexts()]);
  const bodies: readonly [string, unknown][] = [
    ["/infer/", [1, 2, 3]],
    ["/infer/double/", [1, 2, 3]],
    ["/v1/embeddings/", { model: "measure", input: "x" }],
    ["/rerank/", { query: "a", texts: ["b"] }],
  ];
  for (const [path, body] of bodies) assert.equal((await server.post(path, body)).status, 200, path);
  for (const path of ["/v1/models/", "/v2/", "/v2/models/double/", "/livez/", "/metrics/", "/openapi.json/", "/docs/"])
    assert.equal((await server.get(path)).status, 200, path);
  assertProblem(await server.get("/infer/"), { status: 405, code: "METHOD_NOT_ALLOWED", message: /GET, only POST/ });
});

test("the messages of a server advise no option of the library", () => {
  const messages = [
    new BatcherError("TIMEOUT", "m: … Raise timeoutMs.", { timeoutMs: 20, predicted: false, waiting: true }),
    new BatcherError("TIMEOUT", "m: … Raise timeoutMs.", { timeoutMs: 20, predicted: false, waiting: false }),
    new BatcherError("TIMEOUT", 'm: … set maxQueueSize: "auto".', { timeoutMs: 20, waiting: true, likelyMs: 31.2 }),
    new BatcherError("RUN_TIMEOUT", "m: … Raise runTimeoutMs.", { runTimeoutMs: 60_000, size: 4, batchId: 1 }),
    new BatcherError("QUEUE_FULL", 'm: … or onQueueFull: "wait".', { queued: 9, maxQueueSize: 9 }),
    new BatcherError("ITEM_TOO_LARGE", "m: … raise maxItemWeight.", { weight: 9, maxItemWeight: 8 }),
  ].map((error) => problemOf(error).message);
  const [waited, ran, predicted, run, full, large] = messages as [string, string, string, string, string, string];
  assert.match(waited, /^No result within 20 ms: it was still waiting.* X-Request-Timeout-Ms/);
  assert.match(ran, /its batch was running/);
  assert.match(predicted, /its batch takes about 32 ms/);
  assert.match(run, /4 items ran longer than 60000 ms \(RUN_TIMEOUT_MS\)/);
  assert.match(full, /^The queue is full\. Retry later\.$/);
  assert.match(large, /^The input weighs 9; the maximum of one input is 8\. Split it\.$/);
  for (const message of messages)
    assert.doesNotMatch(message, /\b(timeoutMs|runTimeoutMs|maxQueueSize|onQueueFull|maxBatchWeight)\b/);
});

/** A server whose queue is full, and what lets it go on. */
async function full(t: TestContext, settings: Partial<Settings> & { readonly queueMaxSize: number }) {
  const model = gated();
  const server = await serving(t, [model], { maxBatchSize: 1, ...settings });
  const accepted = [server.post("/infer", [0, 0, 0])];
  await model.started;
  while (accepted.length <= settings.queueMaxSize) accepted.push(server.post("/infer", [1, 0, 0]));
  await until(() => server.models.all[0]!.stats().queued === settings.queueMaxSize);
  // The first one that the hub refuses tells every front.
  const told = fronts > 1 ? 1 : 0;
  if (told > 0) await server.post("/infer", [1, 0, 0]);
  const release = async (): Promise<void> => {
    model.release();
    for (const { status } of await Promise.all(accepted)) assert.equal(status, 200);
  };
  return { server, release, told };
}

test("a full queue gets QUEUE_FULL_STATUS at once, with the time to come back, before an input is looked at", async (t) => {
  for (const status of [429, 503] as const) {
    const { server, release } = await full(t, { queueMaxSize: 2, queueFullStatus: status });
    for (const body of [[3, 0, 0], { inputs: [[4, 0, 0]] }, [3, 0]]) {
      const refused = await server.post("/infer", body);
      const message = /queue of gated is full: 2 items wait \(QUEUE_MAX_SIZE 2\)\. Retry in \d+ ms/;
      assertProblem(refused, { status, code: "QUEUE_FULL", message });
      for (const name of ["retry-after", "retry-after-ms"]) assert.match(refused.headers.get(name)!, /^[1-9]\d*$/);
    }
    await release();
    const late = await server.post("/infer", [3, 0]);
    assertProblem(late, { status: 422, code: "INVALID_INPUT", message: /array of 3/ });
  }
});

test("a full queue refuses before the body has come, and the connection serves the next request", async (t) => {
  const { server, release, told } = await full(t, { queueMaxSize: 1 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const body = JSON.stringify([2, 0, 0]);
  const headers = { "content-type": "application/json", "content-length": body.length };
  for (const [turn, path] of ["/infer", "/infer/gated", "/v2/models/gated/infer"].entries()) {
    const asked = request(server.url + path, { method: "POST", agent, headers });
    asked.flushHeaders();
    const [reply] = (await once(asked, "response")) as [IncomingMessage];
    assert.equal(reply.statusCode, 429, path);
    assert.ok(Number(reply.headers["retry-after-ms"]) >= 1);
    assert.equal(asked.reusedSocket, turn > 0, "the connection of the request before");
    asked.end(body);
    await text(reply);
  }
  const { text: metrics } = await server.get("/metrics");
  assert.ok(metrics.includes(`\nsheaf_requests_total{route="/infer",status="429"} ${1 + told}\n`));
  assert.ok(metrics.includes(`\nsheaf_items_total{batcher="gated",outcome="rejected"} ${3 + told}\n`));
  await release();
});

test("a run past RUN_TIMEOUT_MS, by default half of the request's time, gets 504", async (t) => {
  for (const settings of [{ runTimeoutMs: 200 }, { requestTimeoutMs: 400 }]) {
    const model = gated();
    t.after(() => model.release());
    const server = await serving(t, [model], settings);
    assertProblem(await server.post("/infer", [0, 0, 0]), { status: 504, code: "RUN_TIMEOUT", message: /200 ms/ });
  }
});

test("a model that throws gets 500 with its message, and the server serves on", async (t) => {
  let bad = true;
  const model: ModelDefinition = {
    ...doubling(),
    run: (items: Float32Array[]) => {
      if (bad) throw new Error("out of memory");
      return items;
    },
  };
  const server = await serving(t, [model]);
  assertProblem(await server.post("/infer", [0, 0, 0]), { status: 500, code: "MODEL_ERROR", message: /out of memory/ });
  bad = false;
  assert.equal((await server.post("/infer", [0, 0, 0])).status, 200);
});

test("what one item's error asks for pauses nobody; what a run asks for is said in readiness, to operators", async (t) => {
  const busy = (): Error => Object.assign(new Error("busy"), { retryAfterMs: 60_000 });
  const model = {
    ...doubling("busy"),
    run: async (items: Float32Array[]) => {
      if (items.some(([first]) => first === 2)) throw busy();
      return items.map((item) => (item[0] === 1 ? busy() : item));
    },
  };
  const server = await serving(t, [model]);
  assert.equal((await server.post("/infer", [1, 0, 0])).status, 500);
  assert.equal((await server.post("/infer", [0, 0, 0])).status, 200);
  const reasonOf = async (): Promise<string | undefined> => (await server.get("/readyz")).json.models[0].reason;
  assert.equal(await reasonOf(), undefined);
  assert.equal((await server.post("/infer", [2, 0, 0])).status, 500);
  assert.match(
    (await reasonOf()) ?? "",
    /^dispatch is paused for \d+ ms more: a run failed with retryAfterMs: "busy"$/,
  );
});

test("a missing or wrong key gets 401 with WWW-Authenticate; health routes stay open, with a slash at the end too", async (t) => {
  const server = await serving(t, [doubling()], { apiKey: "secret" });
  const missing = await server.post("/infer", [1, 2, 3]);
  assertProblem(missing, { status: 401, code: "UNAUTHORIZED", message: /authorization: Bearer/ });
  assert.match(missing.headers.get("www-authenticate") ?? "", /^Bearer/);
  const wrong = await server.post("/infer", [1, 2, 3], { authorization: "Bearer guess" });
  assertProblem(wrong, { status: 401, code: "UNAUTHORIZED", message: /wrong/ });
  for (const path of ["/metrics", "/v1/models", "/metrics/", "/v1/models/"])
    assert.equal((await server.get(path)).status, 401, path);
  for (const path of ["/health", "/livez", "/readyz", "/livez/", "/readyz/", "/v2/health/live/"])
    assert.equal((await server.get(path)).status, 200, path);
  assert.equal((await server.post("/infer", [1, 2, 3], { authorization: "bearer secret" })).status, 200);
});

test("every error code of a batcher has its status", () => {
  const expected = { QUEUE_FULL: 429, CLOSED: 503, TIMEOUT: 504, RUN_TIMEOUT: 504, ITEM_TOO_LARGE: 422, INVALID_INPUT: 422, RESULT_COUNT: 500, MISSING_RESULT: 404, WORKER_CRASHED: 500 } as const; // prettier-ignore
  for (const [code, status] of Object.entries(expected)) {
    assert.equal(problemOf(new BatcherError(code as keyof typeof expected, "…")).status, status, code);
  }
  // An endpoint of the library answers with the same.
  assert.deepEqual(httpStatusOf, expected);
  for (const [code, status] of Object.entries(statusOfCode)) assert.ok(status >= 400 && status < 600, code);
});

test("a deadline that the queue is too long for gets 429 at once; a higher priority does not count what it overtakes", async (t) => {
  let release!: () => void;
  const gate: { held?: Promise<void> } = {};
  const model: ModelDefinition = {
    ...doubling("held"),
    run: async (items: Float32Array[]) => {
      await (gate.held ?? new Promise((resolve) => setTimeout(resolve, 50)));
      return items;
    },
  };
  const server = await serving(t, [model], { maxBatchSize: 1 });
  const served = server.models.all[0]!;
  await server.post("/infer", [0, 0, 0]); // It now knows what a full batch takes: 50 ms.
  gate.held = new Promise((resolve) => (release = resolve));
  const accepted: Promise<Reply>[] = [];
  for (let i = 0; i < 10; i++) accepted.push(server.post("/infer", [i, 0, 0], { "x-sheaf-priority": "bulk" }));
  while (served.stats().queued < 9) await new Promise((resolve) => setImmediate(resolve));

  const late = await server.post("/infer", [1, 1, 1], { "x-request-timeout-ms": "300", "x-sheaf-priority": "bulk" });
  assertProblem(late, { status: 429, code: "QUEUE_FULL", message: /too long for a deadline of 300 ms: a result is expected after \d{3,} ms/ }); // prettier-ignore
  assert.ok(late.headers.has("retry-after-ms"));
  const urgent = server.post("/infer", [2, 2, 2], { "x-request-timeout-ms": "25000", "x-sheaf-priority": "immediate" });
  while (served.stats().queued < 10) await new Promise((resolve) => setImmediate(resolve));
  release();
  assert.equal((await urgent).status, 200);
  for (const { status } of await Promise.all(accepted)) assert.equal(status, 200);
});

test("an error of a model is told up to a bound: a list has a copy of it for each item", async (t) => {
  const failing: ModelDefinition = {
    name: "long",
    input: { kind: "json" },
    output: { kind: "json" },
    settings: { maxBatchSize: 32 },
    run: () => {
      throw new Error("E".repeat(5_000_000));
    },
  };
  const server = await serving(t, [failing]);
  const { status, text, json } = await server.post("/infer", { inputs: Array(32).fill(1) });
  assert.equal(status, 200);
  assert.match(json.outputs[31].error.message, /^The model failed: E{8192,10000}…/);
  assert.ok(text.length < 400_000, String(text.length));
});

/** Throws for each item above 99, with its number. */
function throwing(): ModelDefinition & { readonly runs: readonly unknown[][] } {
  const runs: unknown[][] = [];
  const run = (items: unknown[]): unknown[] => {
    runs.push(items);
    const odd = items.find((item) => (item as number) > 99);
    if (odd !== undefined) throw new Error(`cannot read ${odd as number}`);
    return items;
  };
  return { name: "throwing", input: { kind: "json" }, output: { kind: "json" }, runs, run };
}

test("an input that made its run throw is answered with its error at once when it comes again", async (t) => {
  const model = throwing();
  const server = await serving(t, [model]);
  const list = await server.post("/infer", { inputs: [1, 100, 2] });
  assert.deepEqual([list.json.outputs[0], list.json.outputs[2]], [1, 2]);
  const runs = model.runs.length;
  const again = await server.post("/infer", { input: 100 });
  assertProblem(again, { status: 500, code: "MODEL_ERROR", message: /^The model failed: cannot read 100$/ });
  assert.equal(model.runs.length, runs);
});

test("the inputs of a tenant that keep breaking runs run alone, as bulk, and those of others together", async (t) => {
  const model = throwing();
  const server = await serving(t, [model], { tenantBy: "header", tenantHeader: "x-tenant" });
  const odd = { "x-tenant": "odd" };
  for (const number of [101, 102, 103]) await server.post("/infer", { inputs: [1, number] }, odd);
  const runs = model.runs.length;
  await server.post("/infer", { inputs: [1, 104, 2] }, odd);
  await server.post("/infer", { inputs: [3, 4] }, { "x-tenant": "good" });
  assert.deepEqual(model.runs.slice(runs), [[1], [104], [2], [3, 4]]);
});

test("where a run of several senders fails for itself, none of them reads another's input", async (t) => {
  const model = throwing();
  const server = await serving(t, [{ ...model, onBatchError: "fail" }], { tenantBy: "header", tenantHeader: "x-tenant", maxWaitMs: 60_000, maxBatchSize: 2, schedulerStrategy: "fifo" }); // prettier-ignore
  const [good, odd] = await Promise.all(
    [1, 100].map((input) => server.post("/infer", { input }, { "x-tenant": String(input) })),
  );
  assert.deepEqual(model.runs, [[1, 100]]);
  for (const reply of [good!, odd!])
    assertProblem(reply, {
      status: 500,
      code: "MODEL_ERROR",
      message: /^The model failed during a run of this input and others\. Retry; the server's log .* request id\.$/,
    });
});

test("/readyz says why a model cannot run to those who may know, as it may name paths; another model serves", async (t) => {
  const broken = {
    slots: 1,
    ready: () => Promise.reject(new Error("no file /srv/models/secret.onnx")),
    run: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
  const model: ModelDefinition = { name: "broken", input: { kind: "json" }, output: { kind: "json" }, run: broken };
  for (const [settings, headers, isTold] of [
    [{ apiKey: "own" }, {}, false],
    [{ apiKey: "own" }, { authorization: "Bearer wrong" }, false],
    [{ apiKey: "own" }, { authorization: "Bearer own" }, true],
    [{}, {}, true],
  ] as const) {
    const server = await serving(t, [model, doubling("fine")], settings);
    await assert.rejects(server.ready(), /secret\.onnx/);
    const { status, json, text } = await server.get("/readyz", headers);
    assert.deepEqual([status, json.models[0].state, text.includes("secret.onnx")], [503, "failed", isTold], text);
    assert.deepEqual(json.models[1], { name: "fine", state: "ready" });
    assert.equal((await server.get("/livez")).status, 200);
    if (!isTold) continue;
    const refused = await server.post("/infer", [1, 2, 3], headers);
    assert.deepEqual([refused.status, refused.json.error.code], [503, "NOT_READY"]);
    assert.equal((await server.post("/infer/fine", [1, 2, 3], headers)).status, 200);
  }
});
