// expo-server-sdk itself against a receiver on this machine: EXPO_BASE_URL leads it there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { expoPush, PushError } from "sheaf/adapters/notifications";

let server;
let Expo;
let requests; // each the tokens it carried
let answer; // of a request: undefined for tickets, or { status, body }
const sent = [];

before(async () => {
  server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = Buffer.concat(chunks);
    const messages = JSON.parse(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body);
    requests.push(messages.map(({ to }) => to));
    const reply = answer?.(messages, requests.length);
    if (reply === "reset") return request.socket.destroy();
    if (reply === undefined) sent.push(...messages.map(({ to }) => to));
    response.writeHead(reply?.status ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(reply?.body ?? { data: messages.map(ticketFor) }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.env.EXPO_BASE_URL = `http://127.0.0.1:${server.address().port}`;
  ({ Expo } = await import("expo-server-sdk"));
});
after(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests = [];
  sent.length = 0;
  answer = undefined;
});

function ticketFor({ to }) {
  if (!to.includes("gone")) return { status: "ok", id: `ticket of ${to}` };
  return { status: "error", message: `${to} is not a registered`, details: { error: "DeviceNotRegistered" } };
}

const token = (n) => `ExponentPushToken[${n}]`;
const message = (n) => ({ to: token(n), title: "Hello", body: `number ${n}` });
const push = (options = {}) => expoPush(new Expo({ retryMinTimeout: 10 }), options);
const all = (send, count) =>
  Promise.allSettled(Array.from({ length: count }, (_, n) => send(message(n % 50 === 7 ? `gone ${n}` : n))));
const kinds = (outcomes) => {
  const counts = {};
  for (const { status, reason } of outcomes) {
    const kind = status === "fulfilled" ? "ok" : (reason.code ?? reason.statusCode ?? reason.message);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
};

test("500 sends at once are 5 requests; each caller has its own ticket or its own error", async () => {
  const outcomes = await all(push(), 500);
  assert.deepEqual(requests.map(({ length }) => length), [100, 100, 100, 100, 100]); // prettier-ignore
  for (const [n, { value, reason }] of outcomes.entries()) {
    if (n % 50 !== 7) assert.equal(value.id, `ticket of ${token(n)}`);
    else {
      assert.ok(reason instanceof PushError);
      assert.deepEqual([reason.code, reason.to], ["DeviceNotRegistered", token(`gone ${n}`)]);
    }
  }
});

test("a request refused for one message's sake: that caller gets the error, the others are sent once", async () => {
  answer = (messages) =>
    messages.some(({ to }) => to === token(33))
      ? { status: 400, body: { errors: [{ code: "VALIDATION_ERROR", message: '"data" must be an object' }] } }
      : undefined;
  const outcomes = await all(push(), 100);
  assert.deepEqual(kinds(outcomes), { ok: 97, DeviceNotRegistered: 2, VALIDATION_ERROR: 1 });
  assert.equal(new Set(sent).size, 99);
  assert.equal(sent.length, 99, "no message was sent twice");
});

test("a storm of 429: Expo's client tries each request three times, callers get the error, nothing more is sent", async () => {
  answer = () => ({ status: 429, body: { errors: [{ code: "TOO_MANY_REQUESTS", message: "slow down" }] } });
  const outcomes = await all(push(), 200);
  assert.deepEqual(kinds(outcomes), { TOO_MANY_REQUESTS: 200 });
  assert.equal(requests.length, 6);
});

test("500 and a reset connection fail their batch only, and are not repeated", async () => {
  answer = (_, count) => (count === 1 ? { status: 500, body: { errors: [{ code: "DOWN", message: "down" }] } } : count === 2 ? "reset" : undefined); // prettier-ignore
  const outcomes = await all(push({ concurrency: 1 }), 300);
  const { ok, DOWN, DeviceNotRegistered, ...reset } = kinds(outcomes);
  assert.deepEqual([ok, DOWN, DeviceNotRegistered, Object.values(reset)], [98, 100, 2, [100]]);
  assert.equal(requests.length, 3);
});

test("too few tickets fail their batch, and no caller gets a neighbour's", async () => {
  answer = (messages, count) => (count === 1 ? { status: 200, body: { data: messages.slice(1).map(ticketFor) } } : undefined); // prettier-ignore
  const outcomes = await all(push({ concurrency: 1 }), 200);
  assert.equal(outcomes.filter(({ reason }) => /Expected Expo to respond with 100 tickets but got 99/.test(reason?.message)).length, 100); // prettier-ignore
  assert.equal(requests.length, 2);
});
