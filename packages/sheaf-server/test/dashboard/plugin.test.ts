import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import { createBatcher } from "sheaf";
import { dashboardPlugin, sheafPlugin } from "../../dist/index.js";
import { doubling, gated, measuringTexts, serving } from "../server/serving.js";
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

test("one viewer more than allowed gets an error, and a place that is left is free again", async (t) => {
  const batcher = createBatcher((numbers: number[]) => numbers, { name: "n" });
  const app = Fastify({ forceCloseConnections: true });
  await app.register(dashboardPlugin, { batchers: [Object.assign(batcher, { maxBatchSize: 32 })], maxViewers: 1 });
  const url = await app.listen({ port: 0 });
  t.after(() => app.close());
  const viewer = await view(url);
  await assert.rejects(view(url), /503 .*1 viewers watch already/);
  viewer.leave();
  await viewer.ended;
  let again;
  while (again === undefined) again = await view(url).catch(() => undefined);
  await again.next("hello");
  again.leave();
});

test("viewers are notified of a shutdown before their streams end", async (t) => {
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

test("a thousand viewers who come at once, and leave, and come back: as many as may watch, the others get an error", async (t) => {
  const app = Fastify({ forceCloseConnections: true });
  t.after(() => app.close());
  const batcher = createBatcher((numbers: number[]) => numbers, { name: "n" });
  await app.register(dashboardPlugin, { batchers: [Object.assign(batcher, { maxBatchSize: 32 })], maxViewers: 8 });
  const url = await app.listen({ port: 0 });
  for (let storm = 0; storm < 2; storm++) {
    // Nobody reads: what they are sent has a bound.
    const replies = await Promise.all(Array.from({ length: 500 }, () => fetch(`${url}/dashboard/events`)));
    const seen = replies.filter(({ status }) => status === 200).length;
    // Of the storm before some may not have been missed yet.
    assert.ok(storm === 0 ? seen === 8 : seen >= 1 && seen <= 8, `${seen} viewers`);
    assert.equal(replies.filter(({ status }) => status === 503).length, 500 - seen);
    await Promise.all(replies.map(({ body }) => body!.cancel()));
    // Their places are free once the server has heard that they left.
    let status = 503;
    while (status !== 200) {
      const again = await fetch(`${url}/dashboard/events`);
      ({ status } = again);
      await again.body!.cancel();
    }
  }
});
