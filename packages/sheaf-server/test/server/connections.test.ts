import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Executor } from "sheaf";
import { doubling, fronts, gated, serving } from "./serving.js";

/** Opens a connection, sends the text, and gives all that comes back until the server closes it. */
async function exchange(url: string, text: string): Promise<string> {
  const socket = await open(url);
  socket.write(text);
  return allOf(socket);
}

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  return socket;
}

async function allOf(socket: Socket): Promise<string> {
  let received = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (received += chunk));
  socket.on("error", () => undefined);
  if (!socket.closed) await once(socket, "close");
  return received;
}

const post = (headers: string, body: string): string =>
  `POST /infer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}\r\n${body}`;

test("headers over 16 KiB get 431, and no HTTP at all gets 400, both as problem documents", async (t) => {
  const server = await serving(t, [doubling()]);
  const long = await exchange(server.url, post(`x-long: ${"x".repeat(17_000)}\r\n`, ""));
  assert.match(long, /^HTTP\/1\.1 431 [^]*"code":"HEADERS_TOO_LARGE"/);
  const broken = await exchange(server.url, "hello\r\n\r\n");
  assert.match(broken, /^HTTP\/1\.1 400 [^]*"code":"BAD_REQUEST"/);
  assert.equal((await server.post("/infer", [1, 2, 3])).status, 200);
});

test("an upload that takes longer than UPLOAD_TIMEOUT_MS is ended with 408", async (t) => {
  const server = await serving(t, [doubling()], { uploadTimeoutMs: 200 });
  const slow = await exchange(server.url, post("content-length: 1000\r\n", "[1,"));
  assert.match(slow, /^HTTP\/1\.1 408 [^]*"code":"REQUEST_TIMEOUT"/);
  assert.equal((await server.post("/infer", [1, 2, 3])).status, 200);
});

test("a body that says it is over MAX_BODY_BYTES gets 413 without being read", async (t) => {
  const server = await serving(t, [doubling()], { maxBodyBytes: 100 });
  const reply = await exchange(server.url, post("content-length: 1000000\r\nconnection: close\r\n", ""));
  assert.match(reply, /^HTTP\/1\.1 413 [^]*"code":"BODY_TOO_LARGE"/);
});

test("this run's servers are read by as many fronts as TEST_FRONTS says", async (t) => {
  const { hub } = await serving(t, [doubling()]);
  assert.equal(hub?.coreShares.length ?? 1, Number(process.env["TEST_FRONTS"] ?? 1));
});

test("one connection more than MAX_CONNECTIONS is closed, and there is room again when one ends", async (t) => {
  const maxConnections = 2 * fronts;
  const server = await serving(t, [doubling()], { maxConnections });
  const kept = await Promise.all(Array.from({ length: maxConnections }, () => open(server.url)));
  const refused = await open(server.url);
  assert.equal(await allOf(refused), "");
  for (const socket of kept) socket.destroy();
  let reply = "";
  // The server sees the closed sockets a moment later.
  while (reply === "")
    reply = await exchange(server.url, post("content-length: 7\r\nconnection: close\r\n", "[1,2,3]"));
  assert.match(reply, /^HTTP\/1\.1 200 /);
});

test("a connection begins one request after another, and none while its client leaves a reply unread", async (t) => {
  const server = await serving(t, [doubling()]);
  let begun = 0;
  for (const reader of server.readers)
    reader.on("request", (_request, reply) => {
      const { end } = reply;
      reply.end = ((...parts: never[]) => (begun++, end.apply(reply, parts as never))) as typeof end;
    });
  const socket = await open(server.url);
  socket.pause();
  socket.write("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(900));
  while (begun === 0) await new Promise((resolve) => setImmediate(resolve));
  const livez = await server.get("/livez");
  assert.equal(livez.status, 200);
  // The kernel's buffers take some 2.5 MB of replies, the descriptions of some ten.
  assert.ok(begun < 100, `${begun} replies were made`);
  socket.destroy();
});

test("a connection that has sent a thousand requests ahead is closed by one more", async (t) => {
  const server = await serving(t, [gated()]);
  const socket = await open(server.url);
  socket.write(post("content-length: 7\r\n", "[1,2,3]").repeat(1100));
  assert.equal(await allOf(socket), "");
  assert.equal((await server.get("/livez")).status, 200);
});

test("requests sent ahead whose connection ends are over, and delay no shutdown", async (t) => {
  const model = gated();
  const server = await serving(t, [model], { maxBatchSize: 1 });
  const socket = await open(server.url);
  socket.write(post("content-length: 7\r\n", "[1,2,3]").repeat(3));
  await model.started;
  while (server.models.all[0]!.stats().queued < 2) await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  while (server.models.all[0]!.stats().queued > 0) await new Promise((resolve) => setImmediate(resolve));
  model.release();
  assert.equal(await server.close({ graceMs: 60_000 }), true);
});

test("a body in thousands of tiny chunks is refused; the same in larger chunks is taken", async (t) => {
  const server = await serving(t, [doubling()]);
  const chunked = (size: number): string => {
    const body = "[1,2,3" + " ".repeat(59_993) + "]";
    const chunks = body
      .match(new RegExp(`.{1,${size}}`, "g"))!
      .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    return post("transfer-encoding: chunked\r\nconnection: close\r\n", `${chunks.join("")}0\r\n\r\n`);
  };
  assert.match(await exchange(server.url, chunked(1)), /^HTTP\/1\.1 400 [^]*chunks of less than 16 bytes/);
  for (const size of [20, 5000])
    assert.match(await exchange(server.url, chunked(size)), /^HTTP\/1\.1 200 [^]*\[2,4,6\]/);
});

test("a request id is taken from the caller if it is one, and made up otherwise", async (t) => {
  const server = await serving(t, [doubling()]);
  const own = await server.post("/infer", [1, 2, 3], { "x-request-id": "abc-123" });
  assert.deepEqual([own.json.request_id, own.headers.get("x-request-id")], ["abc-123", "abc-123"]);
  for (const wrong of ["", "with space", "x".repeat(129)]) {
    const { json } = await server.post("/infer", [1, 2, 3], { "x-request-id": wrong });
    assert.match(json.request_id, /^[\da-f]{32}$/);
  }
});

test("there are no CORS headers by default; CORS_ORIGINS lets those pages in and no others", async (t) => {
  const closed = await serving(t, [doubling()]);
  const none = await closed.post("/infer", [1, 2, 3], { origin: "https://page.example" });
  assert.equal(none.headers.get("access-control-allow-origin"), null);

  const open = await serving(t, [doubling()], { corsOrigins: ["https://page.example"] });
  const preflight = await fetch(`${open.url}/infer`, {
    method: "OPTIONS",
    headers: { origin: "https://page.example", "access-control-request-method": "POST" },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), "https://page.example");
  const other = await open.post("/infer", [1, 2, 3], { origin: "https://other.example" });
  assert.notEqual(other.headers.get("access-control-allow-origin"), "https://other.example");
});

test("while it drains, what is in is finished, new requests get 503 and /readyz says so; then the port is closed", async (t) => {
  const model = gated();
  const server = await serving(t, [model], { maxBatchSize: 1 });
  const accepted = [server.post("/infer", [1, 1, 1]), server.post("/infer", [2, 2, 2])];
  await model.started;
  while (server.models.all[0]!.stats().queued === 0) await new Promise((resolve) => setImmediate(resolve));
  const closed = server.close();
  const refused = await server.post("/infer", [3, 3, 3]);
  assert.deepEqual([refused.status, refused.json.error.code], [503, "DRAINING"]);
  assert.ok(refused.headers.has("retry-after"));
  const health = await server.get("/readyz");
  assert.deepEqual([health.status, health.json.status], [503, "draining"]);
  assert.equal((await server.get("/livez")).status, 200);
  model.release();
  for (const { status } of await Promise.all(accepted)) assert.equal(status, 200);
  assert.equal(await closed, true);
  await assert.rejects(server.post("/infer", [4, 4, 4]));
});

test("live at once, ready only after warm-up over sizes 1, 2, 4 … max, then 1 against max", async (t) => {
  const sizes: number[] = [];
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const cold = {
    ...doubling(),
    warmUpItem: new Float32Array(3),
    run: {
      slots: 1,
      ready: () => released,
      run: (items: Float32Array[]) => (sizes.push(items.length), Promise.resolve(items)),
      close: () => Promise.resolve(),
    },
  };
  const server = await serving(t, [cold], { maxBatchSize: 6, warmupBatches: 5 });
  assert.equal((await server.get("/livez")).status, 200);
  const early = await server.get("/readyz");
  assert.deepEqual([early.status, early.json.status], [503, "warming"]);
  assert.equal((await server.post("/infer", [1, 2, 3])).json.error.code, "NOT_READY");
  release();
  await server.ready();
  assert.equal((await server.get("/readyz")).status, 200);
  assert.deepEqual(sizes.slice(0, 5), [1, 2, 4, 6, 1]);
  const compared = sizes.slice(5);
  assert.deepEqual(new Set(compared), new Set([1, 6]));
  assert.ok(compared.length < 2010, `${compared.length} runs are compared`);
});

test("the warm-up alone shows what runs cost, labelled as such, and no verdict", async (t) => {
  const run = measuredExecutor((size) => 5 + size);
  const server = await serving(t, [{ ...doubling(), run, warmUpItem: new Float32Array(3) }], {
    maxBatchSize: 4,
    warmupBatches: 9,
  });
  await server.ready();
  const { costModel, verdict } = server.models.all[0]!.stats();
  assert.deepEqual([costModel?.basis, verdict.verdict, verdict.runs], ["warm-up", "measuring", 0]);
  // 9 less the first of each size, and the runs that compare one item with the largest size: three rounds at least.
  assert.ok(costModel!.runs >= 6 + 3 * 2, `${costModel!.runs} runs`);
});

/** Its runs take what it says they took, however busy this machine is. */
const measuredExecutor = (runMs: (size: number) => number): Executor<Float32Array, Float32Array> => ({
  slots: 1,
  ready: () => Promise.resolve(),
  run: (items, handle) => {
    handle.measured(runMs(items.length));
    return Promise.resolve(items);
  },
  close: () => Promise.resolve(),
});
