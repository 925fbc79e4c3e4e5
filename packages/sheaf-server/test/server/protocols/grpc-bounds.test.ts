import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, constants, type ClientHttp2Session } from "node:http2";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { Metadata } from "@grpc/grpc-js";
import { service as health } from "grpc-health-check";
import { atEnd } from "../../at-end.js";
import { clientOf, floatsOf, floatsRequest, grpcServing, service, type GrpcServing } from "../grpc-serving.js";
import { costs } from "../../../dist/shared/costs.js";
import { alone, doubling, gated } from "../serving.js";

const infer = "/inference.GRPCInferenceService/ModelInfer";
const headers = { ":method": "POST", ":path": infer, "content-type": "application/grpc", te: "trailers" };

/** A message with its prefix. */
function framed(message: Buffer, isCompressed = false): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = Number(isCompressed);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

const encoded = (message: object): Buffer => service["ModelInfer"]!.requestSerialize(message);

/** An HTTP/2 connection, for what a client of gRPC does not do. */
function rawClient(t: TestContext, server: GrpcServing): ClientHttp2Session {
  const session = connectHttp2(`http://${server.grpcAddress}`);
  session.on("error", () => undefined);
  atEnd(t, () => session.destroy());
  return session;
}

/** What one call of ModelInfer ends with, its bytes sent as they are: its status, or how it was reset. */
async function ended(session: ClientHttp2Session, bytes: Buffer, more: Record<string, string> = {}): Promise<string> {
  const stream = session.request({ ...headers, ...more });
  let status: unknown;
  for (const event of ["response", "trailers"]) stream.on(event, (given) => (status ??= given["grpc-status"]));
  stream.on("error", () => undefined);
  stream.resume();
  stream.end(bytes);
  await once(stream, "close").catch(() => undefined);
  return status === undefined ? `reset ${stream.rstCode}` : String(status);
}

const healthOf = (server: GrpcServing, message = { service: "" }) =>
  new Promise((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = health["Check"]!;
    server.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (error, reply: any) =>
      error === null ? resolve(reply.status) : reject(error),
    );
  });

test("with API_KEY every method but health and ServerLive and ServerReady asks for it", async (t) => {
  const server = await grpcServing(t, [doubling()], { apiKey: "s3cret" });
  assert.equal(await healthOf(server), "SERVING");
  assert.equal((await server.call("ServerLive", {})).status, "OK");
  assert.equal((await server.call("ServerReady", {})).status, "OK");
  const request = floatsRequest("double", 1, 2, 3);
  const others = ["ModelInfer", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex"]; // prettier-ignore
  for (const method of others) {
    const refused = await server.call(method, { name: "double" });
    assert.deepEqual([refused.status, refused.trailers["www-authenticate"]], ["UNAUTHENTICATED", 'Bearer realm="sheaf"'], method); // prettier-ignore
  }
  assert.equal((await server.call("ModelInfer", request, { authorization: "Bearer wrong" })).status, "UNAUTHENTICATED");
  assert.equal((await server.call("ModelInfer", request, { authorization: "Bearer s3cret" })).status, "OK");
  const stream = server.stream();
  const [error] = await once(stream.resume(), "error").catch((thrown: unknown) => [thrown]);
  assert.equal(error.code, 16);
  // Refused at its headers: no byte of the message was needed.
  const early = rawClient(t, server).request(headers);
  const [response] = await once(early, "response");
  assert.equal(response["grpc-status"], "16");
  early.close();
});

test("a message above MAX_BODY_BYTES is RESOURCE_EXHAUSTED, announced or after it was unpacked", async (t) => {
  const server = await grpcServing(t, [doubling()], { maxBodyBytes: 1000 });
  const session = rawClient(t, server);
  const good = encoded(floatsRequest("double", 1, 2, 3));
  const large = encoded({ ...floatsRequest("double", 1, 2, 3), id: "x".repeat(1000) });
  assert.equal(await ended(session, framed(good)), "0");
  assert.equal(await ended(session, framed(large)), "8");
  const gzip = { "grpc-encoding": "gzip" };
  assert.equal(await ended(session, framed(gzipSync(good), true), gzip), "0");
  assert.ok(gzipSync(large).length < 1000);
  assert.equal(await ended(session, framed(gzipSync(large), true), gzip), "8");
  assert.equal(await ended(session, framed(good, true), { "grpc-encoding": "zstd" }), "12");
  let { text } = await server.get("/metrics");
  while (!text.includes(`route="${infer}",status="RESOURCE_EXHAUSTED"} 2`)) ({ text } = await server.get("/metrics"));
});

test("a message is not turned into more objects than the model can need", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const session = rawClient(t, server);
  const name = Buffer.concat([Buffer.from([10, 6]), Buffer.from("double")]);
  // 2 bytes each: an empty input, output, parameter, entry of raw_input_contents; a byte each: an axis.
  for (const tag of [0x2a, 0x32, 0x22, 0x3a]) {
    const many = Buffer.alloc(2_000_000).map((_, i) => (i % 2 === 0 ? tag : 0));
    const before = process.memoryUsage().heapUsed;
    assert.equal(await ended(session, framed(Buffer.concat([name, many]))), "3", `field ${tag >> 3}`);
    assert.ok(process.memoryUsage().heapUsed - before < 100_000_000);
  }
  const axes = Buffer.concat([Buffer.from([0x1a, 0x80, 0x89, 0x7a]), Buffer.alloc(2_000_000, 1)]);
  const length = Buffer.from([0x2a, 0x84, 0x89, 0x7a]);
  assert.equal(await ended(session, framed(Buffer.concat([name, length, axes]))), "3");
  // A text's field as a number, whose value is the text's length to who looks at the field alone: it hides the tag and the length
  // of a tensor's bytes, which are empty inputs then.
  const inputs = Buffer.alloc(2_000_000).map((_, i) => (i % 2 === 0 ? 0x2a : 0));
  const hidden = Buffer.concat([Buffer.from([0x08, 4, 0x3a, 0x80, 0x89, 0x7a]), inputs]);
  const before = process.memoryUsage().heapUsed;
  assert.equal(await ended(session, framed(Buffer.concat([name, hidden]))), "3");
  assert.ok(process.memoryUsage().heapUsed - before < 100_000_000);
});

test("of one stream at most 64 requests wait or run, and the others follow", async (t) => {
  const model = gated();
  const server = await grpcServing(t, [model], { maxBatchSize: 1 });
  const stream = server.stream();
  let replies = 0;
  stream.on("data", () => replies++);
  for (let i = 0; i < 200; i++) stream.write(floatsRequest("gated", i, i, i));
  stream.end();
  const { stats } = server.models.all[0]!;
  while (stats.call(server.models.all[0]).queued < 63) await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(server.models.all[0]!.stats().queued, 63);
  model.release();
  await once(stream, "end");
  assert.equal(replies, 200);
});

test(
  "a shutdown answers what is in, tells those who watch, ends streams, and refuses the rest as UNAVAILABLE",
  { skip: alone },
  async (t) => {
    const model = gated();
    const server = await grpcServing(t, [model]);
    const { path, requestSerialize, responseDeserialize } = health["Watch"]!;
    const watch = server.client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service: "" });
    watch.on("error", () => undefined);
    const statuses: string[] = [];
    watch.on("data", ({ status }) => statuses.push(status));
    await once(watch, "data");
    const stream = server.stream();
    stream.resume().write(floatsRequest("none", 1, 2, 3));
    const running = server.call("ModelInfer", floatsRequest("gated", 1, 2, 3));
    await model.started;
    const closed = server.close({ graceMs: 60_000 });
    assert.equal((await server.call("ModelInfer", floatsRequest("gated", 1, 2, 3))).status, "UNAVAILABLE");
    assert.equal(await healthOf(server), "NOT_SERVING");
    const streamEnd = once(stream, "error");
    model.release();
    const { status, reply } = await running;
    assert.deepEqual([status, floatsOf(reply)], ["OK", [1, 2, 3]]);
    const [error] = await streamEnd;
    assert.deepEqual(
      [error.code, error.details],
      [14, "The server is shutting down; open a stream to another instance."],
    );
    assert.equal(await closed, true);
    assert.deepEqual(statuses, ["SERVING", "NOT_SERVING"]);
  },
);

test("a client that only pings is cut off; one that pings and calls is not", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const flood = rawClient(t, server);
  const end = once(flood, "close");
  let pings = 0;
  while (!flood.destroyed) {
    if (flood.ping(() => undefined)) pings++;
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(pings < 100_000, "it is never cut off");
  }
  await end;
  const client = rawClient(t, server);
  for (let i = 0; i < 30; i++) {
    for (let k = 0; k < 50; k++) await new Promise<void>((resolve) => void client.ping(() => resolve()));
    assert.equal(await ended(client, framed(encoded(floatsRequest("double", 1, 2, 3)))), "0");
  }
  assert.equal(client.destroyed, false);
});

test("a call that arrives too slowly is reset, and so is one whose reply is not read", async (t) => {
  const wide = {
    ...doubling("wide"),
    output: { kind: "vector", length: 300_000 } as const,
    run: (items: unknown[]) => items.map(() => new Float32Array(300_000)),
  };
  const { replyMs } = costs;
  Object.assign(costs, { replyMs: 200 });
  t.after(() => Object.assign(costs, { replyMs }));
  const server = await grpcServing(t, [doubling(), wide], { uploadTimeoutMs: 200 });
  const session = rawClient(t, server);
  const slow = session.request(headers);
  slow.on("error", () => undefined);
  slow.write(framed(encoded(floatsRequest("double", 1, 2, 3))).subarray(0, 20));
  await new Promise((resolve) => slow.once("close", resolve));
  assert.equal(slow.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  const unread = session.request(headers);
  unread.on("error", () => undefined);
  unread.pause();
  unread.end(framed(encoded(floatsRequest("wide", 1, 2, 3))));
  // No event says so to a client that does not read.
  while (!unread.closed) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(unread.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  assert.equal(await ended(session, framed(encoded(floatsRequest("double", 1, 2, 3)))), "0");
});

test("MAX_CONNECTIONS bounds connections, and calls of all connections together", async (t) => {
  const model = gated();
  const server = await grpcServing(t, [model], { maxConnections: 3 });
  const request = floatsRequest("gated", 1, 2, 3);
  const calls = [server.call("ModelInfer", request), server.call("ModelInfer", request), server.call("ModelInfer", request)]; // prettier-ignore
  await model.started;
  let refused = await server.call("ModelInfer", request, { "x-request-id": "fourth" });
  while (refused.status === "OK") refused = await server.call("ModelInfer", request);
  assert.equal(refused.status, "RESOURCE_EXHAUSTED");
  assert.match(refused.details, /3 calls are open \(MAX_CONNECTIONS\)/);
  model.release();
  for (const call of calls) assert.equal((await call).status, "OK");
  const [host, port] = server.grpcAddress!.split(":");
  const sockets = Array.from({ length: 3 }, () => connect({ host, port: Number(port) }));
  atEnd(t, () => sockets.forEach((socket) => socket.destroy()));
  // One of the four is over the limit: the client has one already.
  await Promise.race(
    sockets.map((socket) =>
      once(
        socket.on("error", () => undefined),
        "close",
      ),
    ),
  );
});

/** A call of reflection that asks `count` times for the services: { list_services: "" } of grpc.reflection.v1. */
function reflecting(t: TestContext, server: GrpcServing, key: string, count: number) {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const bytes = (value: Buffer) => value;
  const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const stream = clientOf(t, server.grpcAddress!).makeBidiStreamRequest(path, bytes, bytes, metadata);
  stream.on("error", () => undefined);
  for (let i = 0; i < count; i++) stream.write(Buffer.from([0x3a, 0]));
  return stream;
}

test("reflection names the services to clients with the key, in a bounded number of answers a call", async (t) => {
  const server = await grpcServing(t, [doubling()], { apiKey: "s3cret" });
  const [reply] = await once(reflecting(t, server, "s3cret", 1), "data");
  for (const name of ["inference.GRPCInferenceService", "grpc.health.v1.Health"])
    assert.ok(reply.toString("latin1").includes(name), name);
  await assert.rejects(once(reflecting(t, server, "wrong", 1), "data"), /UNAUTHENTICATED/);
  const many = reflecting(t, server, "s3cret", 400);
  let answers = 0;
  many.on("data", () => answers++);
  const [error] = await once(many, "error");
  assert.match(error.message, /^8 RESOURCE_EXHAUSTED: A call of reflection may ask 100 questions/);
  assert.equal(answers, 100);
});

test("a call whose message comes in thousands of tiny frames ends, and so does a health check of a large message", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const session = rawClient(t, server);
  const codeOf = async (path: string, pieces: number): Promise<number> => {
    const stream = session.request({ ...headers, ":path": path }).on("error", () => undefined);
    stream.write(framed(Buffer.alloc(1_000_000)).subarray(0, 5));
    // Written alone, each byte is a frame of its own.
    for (let sent = 0; sent < pieces && !stream.closed; sent++)
      await new Promise<void>((resolve) => stream.write(Buffer.alloc(1), () => resolve()));
    if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
    return stream.rstCode;
  };
  assert.equal(await codeOf(infer, 5000), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  assert.equal(await codeOf("/grpc.health.v1.Health/Check", 0), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  assert.equal((await server.call("ServerLive", {})).status, "OK");
});
