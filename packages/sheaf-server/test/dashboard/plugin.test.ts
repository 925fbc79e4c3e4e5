import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import Fastify from "fastify";
import { createBatcher } from "sheaf";
import { dashboardPlugin, sheafPlugin } from "../../dist/index.js";
import { alone, doubling, gated, measuringTexts, serving } from "../server/serving.js";
import { Streams } from "../../dist/dashboard/streams.js";
import type { Ticks } from "../../dist/dashboard/ticks.js";
import { view } from "./viewer.js";

test("a viewer gets the figures of every batcher once a second, equal to those of /metrics", async (t) => {
  const server = await serving(t, [doubling(), measuringTexts()]);
  const viewer = await view(server.url);
  t.after(() => viewer.leave());
  const hello = await viewer.next("hello");
  assert.deepEqual(
    hello.batchers.map(({ name, playground }: any) => [name, playground.path, playground.input]),
    [
      ["double", "infer/double", { kind: "floats", length: 3 }],
      ["measure", "infer/measure", { kind: "text" }],
    ],
  );
  await viewer.next("tick");
  await server.post("/infer", { inputs: [[1, 2, 3], [1, 2, 3]] }); // prettier-ignore
  await server.post("/infer", [1, 2, 3]);
  let batches = 0;
  let ok = 0;
  let stats;
  while (ok < 3) {
    const { batchers } = await viewer.next("tick");
    ({ stats } = batchers[0]);
    ok += batchers[0].second.items.ok;
    batches += batchers[0].second.batches;
  }
  assert.equal(ok, 3);
  assert.equal(batches, 2);
  const { text } = await server.get("/metrics");
  assert.ok(text.includes(`sheaf_items_total{batcher="double",outcome="ok"} ${stats.items.ok}\n`), text);
});

test("a later viewer gets the seconds before, each with its own figures", async (t) => {
  const server = await serving(t, [doubling()]);
  const first = await view(server.url);
  t.after(() => first.leave());
  await first.next("tick");
  await server.post("/infer", [1, 2, 3]);
  let seen = 0;
  while (seen < 1) seen += (await first.next("tick")).batchers[0].second.batches;
  const second = await view(server.url);
  t.after(() => second.leave());
  const { history } = await second.next("hello");
  const counted = history.map(({ seconds: [{ batches, reasons }] }: any) => [batches, Object.keys(reasons).length]);
  assert.deepEqual(
    counted.filter(([batches]: [number]) => batches > 0),
    [[1, 1]],
  );
  assert.ok(counted.some(([batches, kinds]: [number, number]) => batches === 0 && kinds === 0));
});

async function watched(t: TestContext, options: { maxViewers: number; title?: string }): Promise<string> {
  const batcher = createBatcher((numbers: number[]) => numbers, { name: "n" });
  const app = Fastify({ forceCloseConnections: true });
  await app.register(dashboardPlugin, { batchers: [Object.assign(batcher, { maxBatchSize: 32 })], ...options });
  const url = await app.listen({ port: 0 });
  t.after(() => app.close());
  return url;
}

test("viewers that stay keep nobody out: one more takes the place of the oldest, which is told so", async (t) => {
  const url = await watched(t, { maxViewers: 2 });
  const [first, second] = [await view(url), await view(url)];
  const third = await view(url);
  assert.deepEqual(await first.next("evicted"), { most: 2 });
  await first.ended;
  for (const viewer of [second, third]) await viewer.next("tick");
  second.leave();
  third.leave();
});

test("a viewer that does not read leaves its place before one that does", async () => {
  const ticks = { onChange: () => undefined, subscribe: () => () => undefined, refresh: () => undefined };
  // More than a stream keeps for its reader.
  const streams = new Streams(ticks as unknown as Ticks, () => "x".repeat(2_000_000), 2);
  const reading = streams.open("a");
  reading.resume();
  await once(reading, "drain");
  const unread = streams.open("a");
  const third = streams.open("a");
  assert.deepEqual(
    [reading, unread, third].map(({ destroyed }) => destroyed),
    [false, true, false],
  );
  streams.close();
});

test("an address that opens one stream after another takes only places of its own", () => {
  const ticks = { onChange: () => undefined, subscribe: () => () => undefined, refresh: () => undefined };
  const streams = new Streams(ticks as unknown as Ticks, () => ({}), 3);
  const operator = streams.open("operator").resume();
  const others = Array.from({ length: 20 }, () => streams.open("other").resume());
  assert.deepEqual(
    [operator, ...others].map(({ writableEnded }) => writableEnded).filter((isOver) => !isOver).length,
    3,
  );
  assert.equal(operator.writableEnded, false);
  streams.close();
});

test("viewers are notified of a shutdown before their streams end", { skip: alone }, async (t) => {
  const model = gated();
  const server = await serving(t, [model]);
  const viewer = await view(server.url);
  await viewer.next("hello");
  const reply = server.post("/infer", [1, 2, 3]);
  await model.started;
  const closed = server.close();
  while ((await viewer.next("tick")).status !== "draining");
  model.release();
  assert.equal((await reply).status, 200);
  await viewer.ended;
  assert.equal(await closed, true);
});

test("the page and its files need no key and may load nothing from elsewhere; its figures need the key", async (t) => {
  const server = await serving(t, [doubling()], { apiKey: "secret" });
  const page = await server.get("/");
  assert.equal(page.status, 200);
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  const links = [...page.text.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link]) => link!);
  assert.deepEqual(links.filter((link) => /^[a-z]+:|^\/\//.test(link)), []); // prettier-ignore
  for (const link of links.filter((link) => link.startsWith("dashboard/"))) {
    const { status, headers } = await server.get(`/${link}`);
    assert.equal(status, 200, link);
    const etag = headers.get("etag")!;
    assert.equal((await server.get(`/${link}`, { "if-none-match": etag })).status, 304, link);
  }
  assert.equal((await server.get("/dashboard/nothing.js")).status, 404);
  assert.equal((await server.get("/dashboard/events")).status, 401);
  const viewer = await view(server.url, { authorization: "Bearer secret" });
  await viewer.next("hello");
  viewer.leave();
});

test("an app that has a / of its own keeps it; a page without a batcher is refused", async (t) => {
  const app = Fastify();
  t.after(() => app.close());
  void app.register(sheafPlugin, { models: [doubling()] });
  app.get("/", () => "mine");
  assert.equal((await app.inject("/")).body, "mine");
  assert.equal((await app.inject("/readyz")).statusCode, 200);
  await assert.rejects(async () => Fastify().register(dashboardPlugin, { batchers: [] }), /at least one batcher/);
});

test("a snapshot that throws is logged, and the page goes on with the next", async (t) => {
  const lines: string[] = [];
  const app = Fastify({
    forceCloseConnections: true,
    logger: { stream: { write: (line: string) => lines.push(line) } },
  });
  t.after(() => app.close());
  const batcher = createBatcher((numbers: number[]) => numbers, { name: "n" });
  let asked = 0;
  const state = () => {
    if (asked++ === 0) throw new Error("not yet");
    return { status: "ok", batchers: {} };
  };
  await app.register(dashboardPlugin, { batchers: [Object.assign(batcher, { maxBatchSize: 32 })], state });
  const viewer = await view(await app.listen({ port: 0 }));
  t.after(() => viewer.leave());
  assert.equal((await viewer.next("tick")).status, "ok");
  assert.match(lines.join(""), /not yet.*no snapshot for the page/);
});

test("a HEAD of the events opens no stream", async (t) => {
  const server = await serving(t, [doubling()]);
  const { status } = await fetch(`${server.url}/dashboard/events`, { method: "HEAD" });
  assert.equal(status, 405);
});

test("below a prefix the page is found with and without the last slash", async (t) => {
  const app = Fastify();
  t.after(() => app.close());
  const batcher = createBatcher((numbers: number[]) => numbers, { name: "n" });
  const batchers = [Object.assign(batcher, { maxBatchSize: 32 })];
  await app.register(dashboardPlugin, { prefix: "/live", batchers });
  const bare = await app.inject("/live");
  assert.equal(bare.statusCode, 308);
  assert.equal(bare.headers.location, "live/");
  assert.equal((await app.inject("/live/")).statusCode, 200);
  assert.equal((await app.inject("/live/dashboard/main.js")).headers["content-type"], "text/javascript; charset=utf-8");
});

test("a thousand viewers who come at once, and leave, and come back: the newest watch, as many as may", async (t) => {
  const url = await watched(t, { maxViewers: 8 });
  for (let storm = 0; storm < 2; storm++) {
    const replies = await Promise.all(Array.from({ length: 500 }, () => fetch(`${url}/dashboard/events`)));
    const watching = await Promise.all(
      replies.map(async ({ body }) => {
        let text = "";
        for await (const bytes of body!) {
          text += Buffer.from(bytes as Uint8Array).toString();
          if (text.includes("event: tick")) return !text.includes("event: evicted");
        }
        return false;
      }),
    );
    assert.equal(watching.filter(Boolean).length, 8);
  }
});
