import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { warmUpHttp } from "../../dist/server/warm-up-http.js";
import { defaultSettings, type Settings } from "../../dist/settings/settings.js";

/** What this process answered meanwhile: `PATH STATUS`, and how often; `connections` is how many it took. */
async function answersOf(
  settings: Partial<Settings>,
  server = createServer(),
  onAnswer: (count: number) => void = () => undefined,
): Promise<{ readonly answers: Record<string, number>; readonly count: number; readonly connections: number }> {
  const answers: Record<string, number> = {};
  const connections = new Set<unknown>();
  let count = 0;
  const note = (message: unknown): void => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const answer = `${request.url} ${response.statusCode}`;
    answers[answer] = (answers[answer] ?? 0) + 1;
    connections.add(request.socket);
    onAnswer(++count);
  };
  subscribe("http.server.response.finish", note);
  try {
    await warmUpHttp({ ...defaultSettings, ...settings }, server);
  } finally {
    unsubscribe("http.server.response.finish", note);
  }
  return { answers, count, connections: connections.size };
}

test("answers its own requests, JSON and bytes, a bounded number, and leaves nothing open", async () => {
  const server = createServer();
  const { answers, connections } = await answersOf({}, server);
  assert.deepEqual(Object.keys(answers).sort(), ["/infer 200", "/v2/models/warm-up/infer 200"]);
  const [json, bytes] = [answers["/infer 200"]!, answers["/v2/models/warm-up/infer 200"]!];
  assert.equal(json + bytes, 3000);
  assert.ok(Math.abs(json - bytes) < 100, `${json} and ${bytes}`);
  assert.ok(connections >= 250, "taking a connection gets warm too");
  const open = (): string[] => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));
  // A handle that has closed is listed for some turns more.
  for (let looks = 0; open().length > 0 && looks < 500; looks++) await sleep(10);
  assert.deepEqual(open(), []);
  server.emit("close");
  assert.deepEqual([server.listenerCount("request"), server.listenerCount("close")], [0, 0]);
});

test("ends when the server is asked for work or closes, and not for a probe", async () => {
  const server = createServer();
  const asked = (method: string) => (count: number) => void (count === 50 && server.emit("request", { method }, {}));
  assert.equal((await answersOf({}, server, asked("GET"))).count, 3000);
  assert.ok((await answersOf({}, server, asked("POST"))).count < 100);
  assert.ok((await answersOf({}, server, (count) => void (count === 50 && server.emit("close")))).count < 100);
  assert.equal(server.listenerCount("request"), 0);
});

test("does nothing where models are not warmed up, at a fleet's worker, or where requests become spans", async () => {
  assert.equal((await answersOf({ warmupBatches: 0 })).count, 0);
  assert.equal((await answersOf({ role: "worker", natsUrl: "nats://127.0.0.1:4222" })).count, 0);
  const api = Symbol.for("opentelemetry.js.api.1");
  const registered = globalThis as Record<symbol, unknown>;
  registered[api] = { trace: {} };
  try {
    assert.equal((await answersOf({})).count, 0);
  } finally {
    delete registered[api];
  }
});

test("ends where its own requests are refused", async () => {
  const { count } = await answersOf({ maxBodyBytes: 100 });
  assert.ok(count < 100, "each refusal closes its connection");
});
