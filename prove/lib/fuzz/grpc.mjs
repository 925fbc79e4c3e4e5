import { fork } from "node:child_process";
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, createServer } from "node:net";
import fc from "fast-check";

const lanes = 8;
const answerMs = 10_000;
const infer = "/inference.GRPCInferenceService/ModelInfer";

/**
 * Sends `count` seeded hostile calls and connections to gRPC, a good call right after each. Gives how they ended, and the
 * server's state before and after.
 * @throws {Error} naming seed and case: no end, a wrong answer to the good call, or a server that ended.
 */
export async function fuzzGrpc({ count, seed }) {
  const child = fork(new URL("server.mjs", import.meta.url), { execArgv: ["--expose-gc"] });
  try {
    const [{ grpcAddress }] = await once(child, "message");
    const url = `http://${grpcAddress}`;
    const recorded = await bytesOfACall();
    const sample = fc.sample(cases(recorded), { seed, numRuns: count });
    await goodCall(url, 0);
    const before = await report(child);
    const ends = {};
    let next = 0;
    const lane = async () => {
      for (let i = next++; i < sample.length; i = next++) {
        const { name, run } = sample[i];
        try {
          for (const end of await inTime(run(url), name)) ends[end] = (ends[end] ?? 0) + 1;
          await inTime(goodCall(url, i), "the good call after it");
        } catch (error) {
          throw new Error(`seed ${seed}, case ${i} (${name}): ${error.message}`, { cause: error });
        }
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    return { ends, before, after: await report(child) };
  } finally {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
}

/** Cases by weight; each runs against a URL and gives how its calls ended: a status of gRPC or HTTP, or a reset. */
const cases = (recorded) =>
  fc.oneof(
    { weight: 8, arbitrary: call().map((one) => ({ name: "call", run: (url) => calls(url, [one]) })) },
    { weight: 2, arbitrary: fc.array(call(), { minLength: 2, maxLength: 40 }).map((some) => ({ name: "many calls", run: (url) => calls(url, some) })) },
    { weight: 1, arbitrary: fc.integer({ min: 50, max: 400 }).map((streams) => ({ name: "reset storm", run: (url) => storm(url, streams) })) },
    { weight: 3, arbitrary: mutated(recorded).map((bytes) => ({ name: "mutated connection", run: (url) => raw(url, bytes) })) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ name: "garbage", run: (url) => raw(url, Buffer.from(bytes)) })) },
    { weight: 1, arbitrary: fc.nat(recorded.length).map((length) => ({ name: "cut connection", run: (url) => raw(url, recorded.subarray(0, length)) })) },
  ); // prettier-ignore

const text = fc.stringMatching(/^[ -~]{0,30}$/);
const names = ["ServerLive", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "ModelStreamInfer", "Nothing"]; // prettier-ignore
const paths = fc.oneof(
  { weight: 6, arbitrary: fc.constant(infer) },
  fc.constantFrom(...names).map((name) => `/inference.GRPCInferenceService/${name}`),
  fc.constantFrom("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/", "*", "/__proto__", "/%00", "/Zürich", "/\x7f"),
  text.map((some) => `/${some}`),
); // prettier-ignore
const metadata = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom("grpc-timeout", "grpc-encoding", "x-request-id", "x-sheaf-priority", "traceparent", "authorization", "some-bin"), text),
    fc.tuple(fc.constant("grpc-timeout"), fc.constantFrom("1m", "0S", "99999999H", "1n", "-1S", "1000000000S", "S")),
    fc.tuple(fc.constant("grpc-encoding"), fc.constantFrom("gzip", "deflate", "snappy", "identity")),
  ),
  { maxLength: 3 },
).map(Object.fromEntries); // prettier-ignore

/** A protobuf message of random fields, some of them nested. */
const { field } = fc.letrec((tie) => ({
  field: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })).map(([number, value]) => Buffer.concat([varint(number << 3), varint(value)])),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.uint8Array({ maxLength: 40 })).map(([number, bytes]) => lengthDelimited(number, Buffer.from(bytes))),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.array(tie("field"), { maxLength: 4 })).map(([number, parts]) => lengthDelimited(number, Buffer.concat(parts))),
  ),
})); // prettier-ignore
const good = goodMessage(0);
const messages = fc.oneof(
  fc.array(field, { maxLength: 8 }).map((fields) => Buffer.concat(fields)),
  fc.array(field, { maxLength: 4 }).map((fields) => Buffer.concat([good, ...fields])),
  mutated(good),
  fc.constant(good),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.nat(20).map((length) => Buffer.concat([good.subarray(0, -14), lengthDelimited(7, Buffer.alloc(length))])),
  fc.constantFrom(0x2a, 0x32, 0x22, 0x3a, 0x0b).map((tag) => Buffer.alloc(90_000, Buffer.from([tag, 0]))),
);
/** With its prefix, or with one that lies. */
const frames = fc
  .record({ message: messages, flag: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat(255)), length: fc.option(fc.oneof(fc.nat(300), fc.nat(2 ** 32 - 1)), { freq: 4 }), cut: fc.option(fc.nat(40), { freq: 4 }) })
  .map(({ message, flag, length, cut }) => {
    const prefix = Buffer.from([flag, 0, 0, 0, 0]);
    prefix.writeUInt32BE(length ?? message.length, 1);
    return Buffer.concat([prefix, message]).subarray(0, cut ?? undefined);
  }); // prettier-ignore
const call = () => fc.oneof({ weight: 5, arbitrary: hostileCall }, fc.constant(goodRequest));
const goodRequest = { path: infer, type: "application/grpc", metadata: {}, frames: [framed(good)], end: "end" };
const hostileCall = fc.record({
    path: paths,
    type: fc.oneof({ weight: 9, arbitrary: fc.constant("application/grpc") }, fc.constantFrom("application/grpc+json", "text/plain", "")),
    metadata,
    frames: fc.oneof({ weight: 8, arbitrary: frames.map((one) => [one]) }, fc.array(frames, { maxLength: 3 })),
    end: fc.constantFrom("end", "end", "end", "reset", "leave"),
  }); // prettier-ignore

async function calls(url, some) {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  try {
    return await Promise.all(some.map((one) => oneCall(session, one)));
  } finally {
    session.destroy();
  }
}

/** Sends a call and gives how it ended; one that never ends by itself is left. */
function oneCall(session, { path, type, metadata: given, frames: sent, end }) {
  return new Promise((resolve) => {
    let stream;
    try {
      const head = { ":method": "POST", ":path": path, te: "trailers", ...given };
      stream = session.request(type === "" ? head : { ...head, "content-type": type });
    } catch {
      // Node refuses to send such a header.
      return resolve("unsent");
    }
    let status;
    const ended = () => resolve(status ?? `reset ${stream.rstCode}`);
    for (const event of ["response", "trailers"])
      stream.on(event, (headers) => {
        status ??= headers["grpc-status"] ?? (headers[":status"] === 200 ? undefined : `HTTP ${headers[":status"]}`);
        if (end !== "end" && status !== undefined) ended();
      });
    stream
      .on("error", () => undefined)
      .on("close", ended)
      .resume();
    for (const frame of sent) stream.write(frame);
    if (end === "end") stream.end();
    if (end === "reset") stream.close(constants.NGHTTP2_CANCEL);
    // A stream of its own accord lasts as long as its client.
    if (end === "leave" || /Watch|StreamInfer|Reflection/.test(path)) setTimeout(() => resolve(status ?? "left"), 50);
  });
}

/** Opens calls and resets them at once. */
async function storm(url, streams) {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  for (let i = 0; i < streams && !session.destroyed && !session.closed; i++) {
    const stream = session.request({ ":method": "POST", ":path": infer, "content-type": "application/grpc" });
    stream.on("error", () => undefined);
    stream.write(framed(good));
    stream.close(constants.NGHTTP2_CANCEL);
    if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  session.destroy();
  return ["storm"];
}

async function raw(url, bytes) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined).resume();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 50))]);
  socket.destroy();
  await closed;
  return ["connection"];
}

async function goodCall(url, number) {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": infer, "content-type": "application/grpc" });
  const pieces = [];
  let status;
  for (const event of ["response", "trailers"]) stream.on(event, (headers) => (status ??= headers["grpc-status"]));
  stream.on("error", () => undefined).on("data", (piece) => pieces.push(piece));
  stream.end(framed(goodMessage(number)));
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
  const reply = Buffer.concat(pieces);
  const expected = Buffer.from(Float32Array.of(number / 2, number, -number / 2).buffer);
  if (status !== "0" || !reply.subarray(-12).equals(expected))
    throw new Error(`a good call ended with ${status} and ${reply.toString("hex")}`);
}

/** { model_name: "double", inputs: [FP32 [1, 3]], raw_input_contents: [n, 2n, -n] } */
function goodMessage(number) {
  const input = [lengthDelimited(1, "input"), lengthDelimited(2, "FP32"), lengthDelimited(3, Buffer.from([1, 3]))];
  const bytes = Buffer.from(Float32Array.of(number, 2 * number, -number).buffer);
  return Buffer.concat([lengthDelimited(1, "double"), lengthDelimited(5, Buffer.concat(input)), lengthDelimited(7, bytes)]);
} // prettier-ignore

function framed(message) {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function lengthDelimited(number, content) {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** What a client sends for one call, as bytes: its preface, settings, headers and message. */
async function bytesOfACall() {
  const pieces = [];
  const listener = createServer((socket) => socket.on("error", () => undefined).on("data", (piece) => pieces.push(piece)));
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${listener.address().port}`);
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": infer, "content-type": "application/grpc" });
  stream.on("error", () => undefined).end(framed(good));
  while (!Buffer.concat(pieces).includes("FP32")) await new Promise((resolve) => setTimeout(resolve, 5));
  session.destroy();
  listener.close();
  return Buffer.concat(pieces);
} // prettier-ignore

/** Bytes flipped, cut out or doubled at a few places. */
function mutated(bytes) {
  const edit = fc.tuple(fc.constantFrom("flip", "cut", "double"), fc.nat(bytes.length - 1), fc.nat(255));
  return fc.array(edit, { minLength: 1, maxLength: 5 }).map((edits) => {
    let result = Buffer.from(bytes);
    for (const [kind, at, byte] of edits) {
      const [head, tail] = [result.subarray(0, at), result.subarray(at)];
      if (kind === "flip" && at < result.length) result[at] = byte;
      else if (kind === "cut") result = Buffer.concat([head, tail.subarray(1 + (byte % 16))]);
      else result = Buffer.concat([head, tail.subarray(0, byte), tail]);
    }
    return result;
  });
}

async function inTime(work, what) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${answerMs} ms`)), answerMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function report(child) {
  child.send("report");
  const [answer] = await once(child, "message");
  return answer;
}
