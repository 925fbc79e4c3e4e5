import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { test, type TestContext } from "node:test";
import { httpTarget } from "../../dist/load/http/http-target.js";
import { renderRequest } from "../../dist/load/http/request.js";
import { deserted, listen } from "../asking.js";
import type { RequestEnd, Target } from "../../dist/load/target.js";

const at = async (t: TestContext, server: Server): Promise<URL> => new URL("/infer", await listen(t, server));
const serve = (t: TestContext, listener: RequestListener): Promise<URL> => at(t, createServer(listener));

function targetOf(t: TestContext, url: URL, bodies: string[], maxConnections?: number): Target {
  const requests = bodies.map((body) => renderRequest({ url, method: "POST", headers: {}, body }));
  const target = httpTarget({ url, requests, maxConnections });
  t.after(() => target.close());
  return target;
}

const send = (target: Target, index = 0): Promise<RequestEnd> =>
  new Promise((resolve) => target.send(index, resolve) as unknown);

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
  return text;
}

test("requests arrive whole and cycle through the bodies, on one connection when one at a time", async (t) => {
  const seen: string[] = [];
  const ports = new Set<number | undefined>();
  const url = await serve(t, (request, reply) => {
    ports.add(request.socket.remotePort);
    void bodyOf(request).then((body) => {
      seen.push(`${request.method} ${request.url} ${request.headers["content-type"]} ${body}`);
      reply.end("ok");
    });
  });
  const target = targetOf(t, url, ['"ä"', "2"]);
  for (let i = 0; i < 3; i++) assert.deepEqual(await send(target, i), { status: 200 });
  const line = "POST /infer application/json";
  assert.deepEqual(seen, [`${line} "ä"`, `${line} 2`, `${line} "ä"`]);
  assert.equal(ports.size, 1);
});

test("the pool grows to its cap; what is above it waits in order and is counted", async (t) => {
  let open = 0;
  let most = 0;
  let answers: (() => void)[] = [];
  const url = await serve(t, (request, reply) => {
    most = Math.max(most, ++open);
    answers.push(() => (open--, reply.end()));
    // Nobody is answered before all three connections carry a request.
    request.resume().on("end", () => {
      if (most < 3) return;
      for (const answer of answers) answer();
      answers = [];
    });
  });
  const target = targetOf(t, url, ["1"], 3);
  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => send(target, i)));
  assert.ok(outcomes.every(({ status }) => status === 200));
  assert.equal(most, 3);
  assert.equal(target.waited, 17);
});

test("a reply that is not 2xx keeps its text", async (t) => {
  const url = await serve(t, (_, reply) => void reply.writeHead(422).end("expected 768 numbers"));
  assert.deepEqual(await send(targetOf(t, url, ["1"])), { status: 422, body: "expected 768 numbers" });
});

test("a refused connection, a closed one and a reply that is not HTTP each have their name", async (t) => {
  const refused = new URL(await deserted(t));
  assert.equal((await send(targetOf(t, refused, ["1"]))).status, "ECONNREFUSED");

  const closing = await at(
    t,
    createTcpServer((socket) => socket.once("data", () => socket.end())),
  );
  assert.equal((await send(targetOf(t, closing, ["1"]))).status, "closed");

  const garbage = await at(
    t,
    createTcpServer((socket) => socket.once("data", () => socket.end("hello\r\n\r\n"))),
  );
  assert.equal((await send(targetOf(t, garbage, ["1"]))).status, "bad response");
});

test("a cancelled request never calls back, and its late reply is not taken for that of the next one", async (t) => {
  const replies: (() => void)[] = [];
  const url = await serve(t, (request, reply) => {
    void bodyOf(request).then((body) => replies.push(() => reply.writeHead(Number(body)).end()));
  });
  const target = targetOf(t, url, ["201", "202"], 1);
  let called = false;
  const cancel = target.send(0, () => (called = true));
  while (replies.length < 1) await new Promise(setImmediate);
  cancel();
  const next = send(target, 1);
  while (replies.length < 2) await new Promise(setImmediate);
  for (const reply of replies) reply();
  assert.deepEqual(await next, { status: 202 });
  assert.equal(called, false);
});

test("a server that closes after every reply is served by a new connection each time", async (t) => {
  let connections = 0;
  const counted = createServer((_, reply) => void reply.writeHead(200, { connection: "close" }).end("bye"));
  counted.on("connection", () => connections++);
  const target = targetOf(t, await at(t, counted), ["1"]);
  for (let i = 0; i < 3; i++) assert.equal((await send(target)).status, 200);
  assert.equal(connections, 3);
});
