import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { ThreadTurns, threadTurns } from "../../dist/http/thread-turns.js";
import { jsonPart, jsonText } from "../../dist/server/codec/large-json.js";
import { costs } from "../../dist/shared/costs.js";
import { echo, measuringTexts, serving } from "./serving.js";

/** Turns on a thread whose time passes only in their work, and in `pass`. */
function virtual() {
  let nowMs = 0;
  const timers: { atMs: number; next: () => void }[] = [];
  const turns = new ThreadTurns({
    now: () => nowMs,
    soon: (next) => timers.push({ atMs: nowMs, next }),
    after: (ms, next) => timers.push({ atMs: nowMs + ms, next }),
  });
  const done: { name: string; atMs: number }[] = [];
  return {
    turns,
    done,
    /** Work of an account that keeps the thread for `ms`. */
    take: (account: object, name: string, ms: number) =>
      void turns.run(account, () => {
        done.push({ name, atMs: nowMs });
        nowMs += ms;
      }),
    pass() {
      for (let timer = timers.shift(); timer !== undefined; timer = timers.shift()) {
        nowMs = Math.max(nowMs, timer.atMs);
        timer.next();
      }
      return done.map(({ name }) => name).join("");
    },
  };
}

test("accounts take turns by the time they have taken, and a new one goes before a busy one's backlog", () => {
  const [heavy, light, late] = [{}, {}, {}];
  const thread = virtual();
  for (let i = 0; i < 6; i++) thread.take(heavy, "H", 100);
  for (let i = 0; i < 6; i++) thread.take(light, "l", 10);
  assert.equal(thread.pass(), "HllllllHHHHH");
  thread.take(heavy, "H", 100);
  thread.take(heavy, "H", 100);
  thread.take(late, "n", 100);
  thread.take(light, "l", 10);
  assert.equal(thread.pass().slice(12), "HnlH", "an idle account has saved up no time");
});

test("after a long turn the thread is left to open requests for a multiple of its length, and not where nobody else has one", () => {
  const account = {};
  const { restAfterTurn: rest } = costs;
  for (const [open, startedAtMs] of [
    [2, [0, 100, 200 + 100 * rest]],
    [3, [0, 100 + 100 * rest, 200 + 200 * rest]],
  ] as const) {
    const thread = virtual();
    thread.turns.open = open;
    for (let i = 0; i < 3; i++) thread.take(account, "x", 100);
    thread.pass();
    // Those that wait for a turn are open themselves.
    assert.deepEqual(
      thread.done.map(({ atMs }) => atMs),
      startedAtMs,
    );
  }
  const stopped = virtual();
  stopped.turns.open = 100;
  for (let i = 0; i < 2; i++) stopped.take(account, "x", 3_600_000);
  stopped.pass();
  assert.equal(stopped.done[1]!.atMs, 3_600_000 + rest * costs.longestTurnMs, "the process was stopped for an hour");
  const short = virtual();
  short.turns.open = 100;
  for (let i = 0; i < 3; i++) short.take(account, "x", costs.shortTurnMs);
  short.pass();
  assert.deepEqual(
    short.done.map(({ atMs }) => atMs),
    [0, costs.shortTurnMs, 2 * costs.shortTurnMs],
  );
});

test("work that throws rejects its own promise, and the turns go on", async () => {
  const turns = new ThreadTurns();
  const failed = turns.run({}, () => {
    throw new Error("mine");
  });
  const next = turns.run({}, () => "others");
  await assert.rejects(failed, /mine/);
  assert.equal(await next, "others");
});

test("one account may have a bounded number of large bodies wait; one more gets 429, and small ones are let in", async (t) => {
  const { turns, take, pass } = virtual();
  const [odd, good] = [{}, {}];
  // The first has its turn at once.
  for (let i = 0; i <= costs.largeBodiesWaiting; i++) take(odd, "o", 1);
  assert.deepEqual([turns.hasRoom(odd), turns.hasRoom(good)], [false, true]);
  for (let i = costs.largeBodiesWaiting; i < costs.largeBodiesWaitingInAll; i++) take({}, "x", 1);
  assert.equal(turns.hasRoom(good), false);
  pass();
  assert.equal(turns.hasRoom(odd), true);

  const { post } = await serving(t, [echo]);
  t.mock.method(threadTurns, "hasRoom", () => false);
  const { status, json, headers } = await post("/infer", { input: "x".repeat(costs.largeBytes) });
  assert.deepEqual([status, json.error.code, headers.get("retry-after")], [429, "QUEUE_FULL", "1"]);
  assert.equal((await post("/infer", { input: "x" })).status, 200);
});

test("large replies are written in turns of their account, and are the same as small ones", async (t) => {
  const vectors: ModelDefinition = {
    name: "vectors",
    input: { kind: "text", maxTokens: 9 },
    output: { kind: "vector", length: 40_000 },
    run: (texts: string[]) => texts.map((text) => Float32Array.from({ length: 40_000 }, (_, i) => i / text.length)),
  };
  const { post } = await serving(t, [vectors, echo], { tenantBy: "header" });
  const run = t.mock.method(threadTurns, "run");
  const { json, headers, text } = await post("/v1/embeddings", { input: ["a", "abc"] }, { "x-tenant": "one" });
  const expected = (length: number) => Array.from({ length: 40_000 }, (_, i) => i / length);
  const [first, second] = json.data.map(({ embedding }: { embedding: number[] }) => embedding);
  assert.deepEqual(first, expected(1));
  assert.deepEqual(Float32Array.from(second), Float32Array.from(expected(3)));
  assert.equal(headers.get("content-length"), String(Buffer.byteLength(text)));
  const accounts = run.mock.calls.map(({ arguments: [account] }) => (account as { name: string }).name);
  assert.ok(accounts.length > 2 && accounts.every((name) => name === "one"), accounts.join());

  const values = [
    large,
    ["\u{1f600}".repeat(costs.largeBytes), large],
    { a: large, b: 1 },
    "é".repeat(costs.largeBytes),
  ];
  for (const input of values) assert.deepEqual((await post("/infer/echo", { input })).json.output, input);
});

const large = Array.from({ length: 50_000 }, (_, i) => (i % 7 === 0 ? { i, text: `${i}` } : i));

test("the JSON of any large value is the same in pieces, of which none is long", () => {
  const odd = [undefined, null, true, "\ud83d", 5n, Float32Array.of(0.5), new Date(0), {}, [], new Map([[1, 2]])];
  const values: unknown[] = [
    [...large, ...odd],
    [odd, large, [large, [large]]],
    { a: large, none: undefined, b: odd, c: { d: new Float64Array(50_000).fill(0.1) } },
    new BigInt64Array(50_000).fill(5n),
    Object.fromEntries(large.map((value, i) => [`key ${i}`, value])),
    `x${"\u{1f600}".repeat(300_000)}`,
    "\ud83d".repeat(300_000),
    new Array(50_000),
  ];
  for (const value of values) {
    const part = jsonPart(value);
    assert.ok(typeof part === "object");
    const pieces = [...part.pieces()];
    assert.ok(pieces.join("") === jsonText(value));
    assert.ok(Math.max(...pieces.map(({ length }) => length)) <= 2 * costs.largeBytes, "a piece");
  }
  for (const value of [...odd, 1, "text"]) assert.equal(jsonPart(value), jsonText(value));
});

test("a reply above MAX_REPLY_BYTES is a 422 that names the setting, on every kind of route", async (t) => {
  const { post } = await serving(t, [measuringTexts("texts"), echo], { maxReplyBytes: 1024 });
  const many = Array.from({ length: 500 }, () => "some words");
  for (const [path, body] of [
    ["/infer/echo", { inputs: many }],
    ["/infer/texts", { inputs: many }],
    ["/v1/embeddings", { input: many }],
    ["/v1/embed", { texts: many, input_type: "classification" }],
    ["/embed", { inputs: many }],
    ["/v2/models/texts/infer", { inputs: [{ name: "text", datatype: "BYTES", shape: [500], data: many }] }],
  ] as const) {
    const { status, json, text } = await post(path, body);
    const message = typeof json.error === "string" ? json.error : (json.error?.message ?? json.message);
    assert.equal(status, 422, `${path}: ${text.slice(0, 300)}`);
    assert.match(message, /larger than 1024 bytes \(MAX_REPLY_BYTES\)/, path);
    assert.equal((await post("/infer/echo", { input: 1 })).status, 200);
  }
});
