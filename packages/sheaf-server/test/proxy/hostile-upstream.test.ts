import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { listen, type Reply } from "../asking.js";
import { proxying } from "./proxying.js";

/** An upstream that does what `answer` says; its URL, and whose key came with each request. */
async function upstream(
  t: TestContext,
  answer: (response: ServerResponse, inputs: unknown[], request: IncomingMessage) => void,
): Promise<{ url: string; keys: (string | undefined)[] }> {
  const keys: (string | undefined)[] = [];
  const listener: RequestListener = (request, response) => {
    keys.push(request.headers.authorization);
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const { input = [] } = (body === "" ? {} : JSON.parse(body)) as { input?: unknown };
      answer(response, Array.isArray(input) ? input : [input], request);
    });
    response.on("error", () => undefined);
  };
  return { url: await listen(t, createServer(listener)), keys };
}

const json = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
};
const vectors = (inputs: readonly unknown[], embedding: unknown = [1]): object[] =>
  inputs.map((_, index) => ({ object: "embedding", index, embedding }));
const texts = ["a", "b", "c"];
const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

async function refusals(
  t: TestContext,
  answer: Parameters<typeof upstream>[1],
  settings: Parameters<typeof proxying>[2] = {},
): Promise<Reply[]> {
  const { url } = await upstream(t, answer);
  const proxy = await proxying(t, url, { maxReplyBytes: 100_000, ...settings });
  // Lists: each stays whole in its request.
  return Promise.all([proxy.embed(texts), proxy.embed(texts)]);
}

type Case = readonly [name: string, answer: Parameters<typeof upstream>[1], message: RegExp, status?: number];
const notAnswers: readonly Case[] = [
  ["an answer above MAX_REPLY_BYTES", (r) => json(r, { junk: "x".repeat(100_000) }), /larger than 100000 bytes/],
  [
    "an answer that is small until it is unpacked",
    (r) => r.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("x".repeat(1_000_000))),
    /larger than 100000 bytes/,
  ],
  [
    "an answer that never ends",
    (r) => {
      const more = (): void => void (r.destroyed || (r.write("x".repeat(10_000)), setImmediate(more)));
      more();
    },
    /larger than 100000 bytes/,
  ],
  ["bytes that are not what content-encoding says", (r) => r.writeHead(200, { "content-encoding": "gzip" }).end("no"), /cannot be reached: \w+|no reply/],
  ["text", (r) => json(r, "It works!"), /not JSON/],
  ["nothing", (r) => json(r, ""), /not JSON/],
  ["204", (r) => r.writeHead(204).end(), /not JSON/],
  ["NaN, as Python writes it", (r, inputs) => json(r, `{"data":[${inputs.map(() => `{"embedding":[NaN]}`).join()}]}`), /not JSON/],
  ["null", (r) => json(r, "null"), /is not an object/],
  ["no data", (r) => json(r, {}), /no data array/],
  ["data that is an object", (r) => json(r, { data: {} }), /no data array/],
  ["entries that are null", (r, inputs) => json(r, { data: inputs.map(() => null) }), /no embedding at data\[0\]/],
  ["entries without an embedding", (r, inputs) => json(r, { data: inputs.map(() => ({})) }), /no embedding at data\[0\]/],
  ["a number beyond every float", (r, inputs) => json(r, `{"data":[${inputs.map(() => `{"embedding":[1,-1e999]}`).join()}]}`), /not finite in data\[0\]\.embedding/],
  ["much beside its data", (r, inputs) => json(r, { data: vectors(inputs), note: "x".repeat(70_000) }), /more than 65536 characters beside its data/],
  ["an embedding nested too deep to be written", (r, inputs) => json(r, `{"data":[${inputs.map(() => `{"embedding":${deep(5_000)}}`).join()}]}`), /nested more than 500 deep/],
  ["one vector twice", (r, inputs) => json(r, { data: [...vectors(inputs), ...vectors(inputs)] }), /cannot be matched to the inputs/],
  ["one index twice", (r, inputs) => json(r, { data: vectors(inputs).map((entry) => ({ ...entry, index: 0 })) }), /cannot be matched to the inputs/],
  ["indices that are not there", (r, inputs) => json(r, { data: vectors(inputs).map((entry) => ({ ...entry, index: 7e9 })) }), /cannot be matched to the inputs/],
  ["a connection that ends in the middle", (r) => { r.writeHead(200, { "content-length": "100" }).write("{"); setImmediate(() => r.destroy()); }, /cannot be reached/],
  ["101", (r) => r.socket!.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"), /cannot be reached/],
  ["what is not HTTP", (r) => r.socket!.end("SSH-2.0-OpenSSH\r\n"), /cannot be reached/],
  ["endless headers", (r) => r.socket!.end(`HTTP/1.1 200 OK\r\n${"x-a: ".padEnd(1000, "b")}\r\n`.repeat(1).padEnd(400_000, "c")), /cannot be reached/],
]; // prettier-ignore

for (const [name, answer, message] of notAnswers) {
  test(`the upstream sends ${name}: its callers get 502, and why`, async (t) => {
    for (const { status, json: body } of await refusals(t, answer)) {
      assert.equal(status, 502);
      assert.match(body.error.message, message);
    }
  });
}

test("an answer that drips is given up at RUN_TIMEOUT_MS, and its connection is ended", async (t) => {
  const ended: Promise<unknown>[] = [];
  const drip = (response: ServerResponse): void => {
    ended.push(once(response, "close"));
    const timer = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(timer));
  };
  for (const { status, json: body } of await refusals(t, drip, { runTimeoutMs: 200 }))
    assert.deepEqual([status, body.error.code], [504, "RUN_TIMEOUT"]);
  await Promise.all(ended);
});

test("an answer in any order of its indices is divided by them, whatever comes before it", async (t) => {
  const { url } = await upstream(t, (response, inputs) => {
    response.writeEarlyHints({ link: "</x>; rel=preload" });
    response.writeProcessing();
    json(response, { data: inputs.map((input, index) => ({ index, embedding: [String(input)] })).reverse() });
  });
  const proxy = await proxying(t, url);
  const replies = await Promise.all(texts.map((text) => proxy.embed(text)));
  assert.deepEqual(
    replies.map((reply) => reply.json.data[0].embedding),
    texts.map((text) => [text]),
  );
});

test("200 with an error in it is a 502 in the upstream's words", async (t) => {
  for (const { status, json: body } of await refusals(t, (r) => json(r, { error: { message: "Overloaded." } })))
    assert.deepEqual([status, body], [502, { error: { message: "Overloaded." } }]);
});

test("a refusal of a megabyte keeps its status and is shortened", async (t) => {
  for (const { status, text } of await refusals(t, (r) => json(r, { error: "x".repeat(1_000_000) }, 403))) {
    assert.equal(status, 403);
    assert.match(text, /refused with 403, in more than 65536 bytes/);
    assert.ok(text.length < 300);
  }
});

test("no redirect is followed: the key goes to no other host", async (t) => {
  const other = await upstream(t, (response, inputs) => json(response, { data: vectors(inputs) }));
  for (const status of [301, 302, 303, 307, 308]) {
    const { url } = await upstream(t, (response) => response.writeHead(status, { location: `${other.url}/x` }).end());
    const proxy = await proxying(t, url);
    const [shared, alone] = await Promise.all([proxy.embed("a"), proxy.embed([])]);
    for (const reply of [shared, alone]) {
      assert.equal(reply.status, 502);
      assert.match(reply.json.error.message, new RegExp(`answered ${status}, which is not a valid reply`));
    }
    const passed = await fetch(`${proxy.url}/v1/models`, { headers: { authorization: "k" }, redirect: "manual" });
    assert.equal(passed.status, status, "another route's redirect is the client's to follow or not");
    await passed.text();
  }
  assert.deepEqual(other.keys, []);
});

test("usage that is not a number is left out; everything else comes as it was", async (t) => {
  const answer = (response: ServerResponse, inputs: unknown[]): void =>
    json(response, { data: vectors(inputs, "AACAPw=="), usage: { total_tokens: "many" }, extra: 1 });
  for (const { json: body } of await refusals(t, answer)) {
    assert.deepEqual(body.data, vectors(texts, "AACAPw=="));
    assert.deepEqual([body.usage, body.extra], [undefined, 1]);
  }
});

test("an upstream that ends its connection after each answer, without saying so, is asked again each time", async (t) => {
  const { url } = await upstream(t, (response, inputs) => {
    json(response, { data: vectors(inputs) });
    response.once("finish", () => response.socket?.end());
  });
  const proxy = await proxying(t, url);
  for (let i = 0; i < 20; i++) {
    const { status, text } = await proxy.embed("a");
    // The connection may be chosen before its end is noticed: then the client gets an error, and nothing was sent
    // twice.
    assert.ok(status === 200 || (status === 502 && text.includes("cannot be reached")), text);
  }
});
