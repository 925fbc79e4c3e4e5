import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { atEnd } from "../../at-end.js";
import { countingExecutions } from "../../executions.js";
import { floatsRequest, grpcServing, type GrpcServing } from "../grpc-serving.js";
import { doubling } from "../serving.js";

const infer = "/inference.GRPCInferenceService/ModelInfer";
const headers = { ":method": "POST", ":path": infer, "content-type": "application/grpc", te: "trailers" };
const connections = 5;
const callsOfEach = 200;
const calls = connections * callsOfEach;

/** A connection with calls that have sent part of their message, all of them known to the server. */
async function halfOpenCalls(t: TestContext, server: GrpcServing): Promise<ClientHttp2Session> {
  const session = connect(`http://${server.grpcAddress}`);
  session.on("error", () => undefined);
  atEnd(t, () => session.destroy());
  await once(session, "remoteSettings");
  const streams = Array.from({ length: callsOfEach }, () => session.request(headers).on("error", () => undefined));
  for (const stream of streams) stream.write(Buffer.from([0, 0, 0, 0, 50]));
  await Promise.all(streams.filter(({ pending }) => pending).map((stream) => once(stream, "ready")));
  await new Promise(setImmediate);
  // The answer to a ping comes after all that was sent before it was read.
  await new Promise<void>((resolve) => void session.ping(() => resolve()));
  return session;
}

test("a half-open call that is dropped costs as much as one alone, however many are dropped with it", async (t) => {
  const executions = await countingExecutions(t);
  const server = await grpcServing(t, [doubling()]);
  const sessions: ClientHttp2Session[] = [];
  for (let i = 0; i < connections; i++) sessions.push(await halfOpenCalls(t, server));
  await executions.busiest();
  for (const session of sessions) session.destroy();
  const ended = async (): Promise<number> => {
    const { text } = await server.get("/metrics");
    return Number(new RegExp(`route="${infer}",status="CANCELLED"} (\\d+)`).exec(text)?.[1] ?? 0);
  };
  while ((await ended()) < calls) await sleep(20);
  const { count, place } = await executions.busiest();
  assert.ok(count < 20 * calls, `${place} ran ${count} times for ${calls} calls`);
  assert.equal((await server.call("ModelInfer", floatsRequest("double", 1, 2, 3))).status, "OK");
});

test("a connection may have 1,000 calls open at once", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const session = connect(`http://${server.grpcAddress}`);
  session.on("error", () => undefined);
  atEnd(t, () => session.destroy());
  const [{ maxConcurrentStreams }] = await once(session, "remoteSettings");
  assert.equal(maxConcurrentStreams, 1000);
});
