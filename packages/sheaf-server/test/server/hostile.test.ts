import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { workerThread } from "sheaf/node";
import { costs } from "../../dist/shared/costs.js";
import { doubling, echo, serving, type Serving } from "./serving.js";

const echoWorker = new URL("data:text/javascript,export default { run: (items) => items }");

async function open(t: TestContext, url: string, allowHalfOpen = false): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** All that comes back on a connection of its own until the server ends it. */
async function answer(t: TestContext, { url }: Serving, request: string): Promise<string> {
  const socket = await open(t, url);
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  socket.write(request);
  await once(socket, "close");
  return text;
}

const post = (body: string, headers: readonly string[] = [], version = "1.1"): string =>
  [
    `POST /infer HTTP/${version}`,
    "host: localhost",
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
    "",
    body,
  ].join("\r\n");

async function connections({ port }: Serving): Promise<number> {
  return new Promise((resolve, reject) =>
    port.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}

/** Waits until the server has none; the test's own time limit ends it. */
async function untilAllEnded(server: Serving): Promise<void> {
  while ((await connections(server)) > 0) await delay(50);
}

/** The time to read a reply. */
Object.assign(costs, { replyMs: 300 });
const quick = { uploadTimeoutMs: 150, requestTimeoutMs: 300, keepAliveTimeoutMs: 200 };

test("clients that do not read their replies are disconnected, and what they were sent is freed", async (t) => {
  // A busy machine takes more than a moment for three uploads of 9 MB.
  const server = await serving(t, [echo], { ...quick, uploadTimeoutMs: 4000 });
  const body = JSON.stringify("x".repeat(9_000_000));
  for (let client = 0; client < 3; client++) {
    const socket = await open(t, server.url);
    socket.pause();
    socket.write(post(body).replace("connection: close\r\n", ""));
  }
  // They must be there first, but for those that were too slow on a crowded machine and are gone.
  const answered = (): number => server.models.all[0]!.stats().items.ok;
  while (answered() === 0 || answered() < (await connections(server))) await delay(10);
  await untilAllEnded(server);
});

test("a client that reads its reply a few bytes at a time is disconnected when its time is over", async (t) => {
  const server = await serving(t, [echo], { uploadTimeoutMs: 60_000 });
  const body = JSON.stringify("x".repeat(9_000_000));
  const socket = await open(t, server.url);
  socket.write(post(body));
  await once(socket, "readable");
  while ((await connections(server)) > 0) {
    socket.read(100);
    await delay(10);
  }
  assert.equal((await server.post("/infer", "[1]")).status, 200);
});

test("connections that say nothing, or half a request, and never close are closed", async (t) => {
  const server = await serving(t, [echo], quick);
  for (const text of ["", "POST /inf", "no HTTP at all\r\n\r\n", post("[1]").slice(0, -1)]) {
    const socket = await open(t, server.url, true);
    socket.pause();
    if (text !== "") socket.write(text);
  }
  await untilAllEnded(server);
  // Not over a connection: it would have to be as quick as those above.
  const next = await server.app.inject({ method: "POST", url: "/infer", payload: [1] });
  assert.equal(next.statusCode, 200);
});

test("JSON nested a million deep is refused before it reaches a worker, where it would fail its batch-mates", async (t) => {
  const run = workerThread<never>(echoWorker);
  const server = await serving(t, [{ ...echo, run }]);
  await server.ready();
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  const objects = (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);
  for (const body of [nested(1e6), `{"input":${objects(1e6)}}`, nested(501), `{"input":${objects(500)}}`]) {
    const reply = await server.post("/infer", body);
    assert.equal(reply.status, 422);
    assert.match(reply.json.error.message, /nested at most 500 deep/);
  }
  for (const body of [nested(500), `{"input":${objects(499)}}`]) {
    assert.equal((await server.post("/infer", body)).status, 200);
  }
});

test("prototype names are ordinary keys of an item, and none of the request's", async (t) => {
  const server = await serving(t, [echo]);
  for (const name of ["__proto__", "constructor", "prototype", "toString"]) {
    const own = await server.post("/infer", `{"input":{"${name}":{"isAdmin":true}}}`);
    assert.ok(own.text.includes(`"output":{"${name}":{"isAdmin":true}}`), own.text);
    const beside = await server.post("/infer", `{"input":1,"${name}":{"isAdmin":true}}`);
    assert.equal(beside.status, 422);
    assert.equal((await server.post(`/infer/${name}`, "1")).status, 404);
  }
  assert.equal(({} as { isAdmin?: true }).isAdmin, undefined);
});

test("texts of any characters come back as they were sent", async (t) => {
  const server = await serving(t, [echo]);
  const texts = ["a\u0000b", "\u202Eright to left", "\u{10FFFF}", "𝒞".repeat(10_000), "\uFEFF", "é"];
  for (const text of texts) assert.equal((await server.post("/infer", { input: text })).json.output, text);
  const several = await server.post("/infer", { inputs: texts });
  assert.deepEqual(several.json.outputs, texts);
});

const chunked = ["transfer-encoding: chunked"];
const withoutLength = (text: string): string => text.replace(/content-length: \d+\r\n/, "");
for (const [what, request, status] of [
  ["a content-length that is too short", post("[1,2,3]").replace("length: 7", "length: 3"), 400],
  ["a negative content-length", post("[1]").replace("length: 3", "length: -1"), 400],
  ["a signed content-length", post("[1]").replace("length: 3", "length: +3"), 400],
  ["two content-lengths", post("[1]", ["content-length: 4"]), 400],
  ["content-length and chunks", post("3\r\n[1]\r\n0\r\n\r\n", chunked), 400],
  ["chunks of no length", withoutLength(post("zz\r\n[1]\r\n0\r\n\r\n", chunked)), 400],
  ["a chunk longer than memory", withoutLength(post("ffffffffffffffff\r\n[1]", chunked)), 408],
  ["chunk extensions without end", withoutLength(post(`3;${"a=b;".repeat(10_000)}\r\n`, chunked)), 400],
  ["chunks", withoutLength(post("2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n", chunked)), 200],
  ["an expectation", post("[1]", ["expect: 100-continue"]), 100],
  ["an expectation of something else", post("[1]", ["expect: cake"]), 417],
  ["HTTP/1.0", post("[1]", [], "1.0"), 200],
  ["HTTP/2 without negotiation", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ["an absolute URL", post("[1]").replace("/infer", "http://elsewhere.example/infer"), 200],
  ["no host", post("[1]").replace("host: localhost\r\n", ""), 400],
  ["a NUL in a header", post("[1]", ["x-a: a\0b"]), 400],
  ["a folded header", post("[1]", ["x-a: a", " b"]), 400],
  ["bare line feeds", post("[1]").replaceAll("\r\n", "\n"), 400],
  ["two deadlines", post("[1]", ["x-request-timeout-ms: 5", "x-request-timeout-ms: 6"]), 422],
  ["two priorities", post("[1]", ["x-sheaf-priority: bulk", "x-sheaf-priority: bulk"]), 422],
  [
    "900 headers", // Node 24 has a limit of its own above a thousand
    post(
      "[1]",
      Array.from({ length: 900 }, (_, i) => `a${i}: b`),
    ),
    200,
  ],
  ["a path of broken escapes", post("[1]").replace("/infer", "/infer/%ff%fe"), 400],
  ["TRACE", post("[1]").replace("POST", "TRACE"), 405],
] as const) {
  test(`a request with ${what} gets ${status}, and the next client is served`, async (t) => {
    const server = await serving(t, [echo], { uploadTimeoutMs: 300 });
    assert.equal(/^HTTP\/1\.1 (\d{3}) /.exec(await answer(t, server, request))?.[1], String(status));
    assert.equal((await server.post("/infer", "[1]")).status, 200);
  });
}

test("1,000 pipelined requests are answered in order, each with its own result", async (t) => {
  const server = await serving(t, [doubling()]);
  const body = (i: number): string => `[${i},0,0]`;
  const requests = Array.from({ length: 1000 }, (_, i) => {
    const request = post(body(i));
    return i === 999 ? request : request.replace("connection: close\r\n", "");
  });
  const text = await answer(t, server, requests.join(""));
  const outputs = [...text.matchAll(/"output":\[(\d+),0,0\]/g)].map(([, value]) => Number(value));
  assert.deepEqual(
    outputs,
    Array.from({ length: 1000 }, (_, i) => 2 * i),
  );
});
