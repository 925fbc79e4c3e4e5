import { connect as connectHttp2, constants } from "node:http2";
import { connect, createServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { victim } from "./attack.mjs";
import { cases } from "./grpc-cases.mjs";
import { framed, goodMessage, infer } from "./grpc-messages.mjs";

const lanes = 8;
const chunk = 200;
/** Generous: a busy machine took more than a minute for the calls of a rapid reset. */
const answerMs = 300_000;
/** Calls that Node lets a client reset at once, and each second. */
const resetBurst = 1000;
const resetRate = 33;

/**
 * Sends `count` seeded hostile calls and connections to gRPC, a good call right after each. Gives how they ended by kind of
 * case, and the server's state before and after.
 * @throws {Error} naming seed and case: no end, a wrong one, a wrong answer to the good call, or a server that ended.
 */
export async function fuzzGrpc({ count, seed, progress = () => undefined }) {
  const server = await victim("server.mjs");
  try {
    const url = `http://${server.grpcAddress}`;
    const recorded = await bytesOfACall();
    await goodCall(url, 0);
    const before = await server.report();
    const ends = {};
    // Cases are made a few at a time: with their bytes they are large.
    for (let done = 0; done < count; done += chunk) {
      const seedOfChunk = seed + done;
      const sample = fc.sample(cases(recorded), { seed: seedOfChunk, numRuns: Math.min(chunk, count - done) });
      await attack(url, sample, { seed: seedOfChunk, ends });
      progress(done + sample.length);
    }
    return { ends, before, after: await server.report() };
  } finally {
    await server.end();
  }
}

async function attack(url, sample, { seed, ends }) {
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < sample.length; i = next++) {
      const { name } = sample[i];
      try {
        ends[name] ??= {};
        for (const end of await inTime(run(url, sample[i]), name)) ends[name][end] = (ends[name][end] ?? 0) + 1;
        await inTime(goodCall(url, i), "the good call after it");
      } catch (error) {
        throw new Error(`seed ${seed}, case ${i} (${name}): ${error.message}`, { cause: error });
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** How the calls of a case ended: a status of gRPC or HTTP, or a reset. */
async function run(url, { calls: some, storm, resets, part, bytes }) {
  if (some !== undefined) return calls(url, some);
  if (bytes !== undefined) return raw(url, bytes);
  return reset(url, { calls: storm ?? resets, part, isEnded: resets !== undefined });
}

async function calls(url, some) {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  try {
    return await Promise.all(some.map((one) => oneCall(session, one)));
  } finally {
    await leave(session);
  }
}

/** Sends a call and gives how it ended; one that never ends by itself is left. Rejects where it ends unlike expected. */
function oneCall(session, { path, type, metadata: given, frames: sent, end, expected }) {
  return new Promise((resolve, reject) => {
    let stream;
    try {
      const head = { ":method": "POST", ":path": path, te: "trailers", ...given };
      stream = session.request(type === "" ? head : { ...head, "content-type": type });
    } catch {
      // Node refuses to send such a header.
      return resolve("unsent");
    }
    let status;
    let message = "";
    const pieces = [];
    const ended = () => {
      const how = status ?? `reset ${stream.rstCode}`;
      const isWrong =
        expected !== undefined && (how !== expected.status || !Buffer.concat(pieces).includes(expected.part));
      if (isWrong) reject(new Error(`expected ${JSON.stringify(expected).slice(0, 300)}, got ${how}: ${message}`));
      else if (/\bHTTP\b|\bheader/i.test(message) && how !== "unsent")
        reject(new Error(`it speaks of HTTP: ${message}`));
      else resolve(how);
    };
    for (const event of ["response", "trailers"])
      stream.on(event, (headers) => {
        status ??= headers["grpc-status"] ?? (headers[":status"] === 200 ? undefined : `HTTP ${headers[":status"]}`);
        message ||= String(headers["grpc-message"] ?? "");
        if (end !== "end" && status !== undefined) ended();
      });
    stream
      .on("error", () => undefined)
      .on("close", ended)
      .on("data", (piece) => expected !== undefined && pieces.push(piece));
    for (const frame of sent) stream.write(frame);
    if (end === "end") stream.end();
    if (end === "reset") stream.close(constants.NGHTTP2_CANCEL);
    // A stream of its own accord lasts as long as its client.
    if (end === "leave" || /Watch|StreamInfer|Reflection/.test(path)) setTimeout(() => resolve(status ?? "left"), 50);
  });
}

/** Opens calls and resets them at once, `part` bytes of a message sent. A client that goes on must be cut off. */
async function reset(url, { calls: count, part, isEnded }) {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  let code = "";
  session.once("goaway", (given) => (code = ` ${given}`));
  await new Promise((resolve) => session.once("connect", resolve).once("close", resolve));
  const startedAtMs = performance.now();
  for (let i = 0; i < count && !session.closed && !session.destroyed; i++) {
    const stream = session.request({ ":method": "POST", ":path": infer, "content-type": "application/grpc" });
    stream.on("error", () => undefined);
    if (part > 0) stream.write(framed(goodMessage(0)).subarray(0, part));
    stream.close(constants.NGHTTP2_CANCEL);
    // A client drops calls that it has not sent yet: the answer to a ping says that these were read.
    if (i % 100 === 0) await new Promise((resolve) => session.ping(resolve) || resolve()).then(() => nextTurn());
  }
  const hasEnded = session.closed || session.destroyed;
  await leave(session);
  if (!isEnded) return ["storm"];
  if (hasEnded) return [`ended${code}`];
  const seconds = (performance.now() - startedAtMs) / 1000;
  if (count < 2 * (resetBurst + resetRate * seconds)) return ["too slow to be cut off"];
  throw new Error(`the connection is open after ${count} calls that were reset within ${seconds.toFixed(0)} s`);
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
  await leave(session);
  const reply = Buffer.concat(pieces);
  const expected = Buffer.from(Float32Array.of(number / 2, number, -number / 2).buffer);
  if (status !== "0" || !reply.subarray(-12).equals(expected))
    throw new Error(`a good call ended with ${status} and ${reply.toString("hex")}`);
}

/**
 * Ends the session in a turn of its own: Node corrupts its memory where a session is used in a callback of its own frames
 * (nodejs/node#65093).
 */
async function leave(session) {
  await nextTurn();
  session.destroy();
}

/** What a client sends for one call, as bytes: its preface, settings, headers and message. */
async function bytesOfACall() {
  const pieces = [];
  const listener = createServer((socket) => socket.on("error", () => undefined).on("data", (piece) => pieces.push(piece)));
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${listener.address().port}`);
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": infer, "content-type": "application/grpc" });
  stream.on("error", () => undefined).end(framed(goodMessage(0)));
  while (!Buffer.concat(pieces).includes("FP32")) await new Promise((resolve) => setTimeout(resolve, 5));
  session.destroy();
  listener.close();
  return Buffer.concat(pieces);
} // prettier-ignore

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
