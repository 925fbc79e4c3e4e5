import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { listen } from "../asking.js";
import { proxying } from "./proxying.js";

/** What the upstream's own connection says is not the client's business. */
const echo: RequestListener = (request, response) => {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("end", () => {
    response.writeHead(200, { connection: "close, x-hop", "keep-alive": "timeout=1", "x-hop": "1", "x-end": "1" });
    response.end(`${bytes} bytes`);
  });
};

async function open(t: TestContext, url: string): Promise<{ socket: Socket; text(): string }> {
  let text = "";
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  await once(socket, "connect");
  return { socket, text: () => text };
}

const upload = (headers: string): string =>
  `POST /v1/files HTTP/1.1\r\nhost: localhost\r\n${headers}content-length: 2\r\n\r\nab`;

test("each side keeps or ends its own connection: neither side is affected by the other's", async (t) => {
  const proxy = await proxying(t, await listen(t, createServer(echo)));
  const closing = await open(t, proxy.url);
  closing.socket.write(upload("connection: close\r\n"));
  await once(closing.socket, "close");
  assert.match(closing.text(), /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(closing.text(), /\r\nx-end: 1\r\n/);
  assert.doesNotMatch(closing.text(), /x-hop|timeout=1/i);

  const staying = await open(t, proxy.url);
  for (const answers of [1, 2, 3]) {
    staying.socket.write(upload(""));
    while (staying.text().split("2 bytes").length <= answers) await once(staying.socket, "data");
  }
});

test("an upload that asks for 100-continue first, as curl does above a megabyte, goes through", async (t) => {
  const proxy = await proxying(t, await listen(t, createServer(echo)));
  const { socket, text } = await open(t, proxy.url);
  socket.write(upload("connection: close\r\nexpect: 100-continue\r\n"));
  await once(socket, "close");
  assert.match(text(), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*2 bytes/);
});

test("another route whose answer does not begin within RUN_TIMEOUT_MS is a 504 that says so", async (t) => {
  const proxy = await proxying(
    t,
    await listen(
      t,
      createServer(() => undefined),
    ),
    { runTimeoutMs: 200 },
  );
  const { status, json } = await proxy.get("/v1/models");
  assert.deepEqual([status, json.error.code], [504, "RUN_TIMEOUT"]);
  assert.match(json.error.message, /did not answer within 200 ms \(RUN_TIMEOUT_MS\)/);
});

test("what the upstream cuts off in the middle is cut off for the client too, never ended as if it were whole", async (t) => {
  const halves: RequestListener = (_request, response) => {
    response.write("half");
    setImmediate(() => response.destroy());
  };
  const proxy = await proxying(t, await listen(t, createServer(halves)));
  await assert.rejects(proxy.get("/v1/models"));
  const { socket, text } = await open(t, proxy.url);
  socket.write("GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(socket, "close");
  assert.doesNotMatch(text(), /\r\n0\r\n/, "no last chunk");
});

test("a client that hangs up ends its request to the upstream", async (t) => {
  const told = new EventEmitter();
  const endless: RequestListener = (_request, response) => {
    response.write("data: 1\n\n");
    response.once("close", () => told.emit("ended"));
  };
  const proxy = await proxying(t, await listen(t, createServer(endless)));
  const ended = once(told, "ended");
  const { socket } = await open(t, proxy.url);
  socket.write("GET /v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(socket, "data");
  socket.destroy();
  await ended;
});

test("another route may answer as late as RUN_TIMEOUT_MS allows, however soon embeddings must", async (t) => {
  const late: RequestListener = (_request, response) => void setTimeout(() => response.end("late"), 1000);
  const limits = { uploadTimeoutMs: 200, requestTimeoutMs: 200, runTimeoutMs: 60_000 };
  const proxy = await proxying(t, await listen(t, createServer(late)), limits);
  const { status, text } = await proxy.get("/v1/models");
  assert.deepEqual([status, text], [200, "late"]);
});
