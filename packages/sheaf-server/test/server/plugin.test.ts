import assert from "node:assert/strict";
import { test } from "node:test";
import { once } from "node:events";
import { connect, constants, type ClientHttp2Stream } from "node:http2";
import Fastify, { type FastifyPluginAsync } from "fastify";
import { createProxy, createServer, sheafPlugin, type SheafPluginOptions } from "../../dist/index.js";
import { doubling, gated } from "./serving.js";

test("an app of your own registers the routes, keeps its own, and drains the models when it closes", async (t) => {
  const app = Fastify();
  t.after(() => app.close());
  app.get("/hello", () => ({ hello: "you" }));
  app.post("/echo", (request) => request.body);
  await app.register(sheafPlugin, { prefix: "/ai", models: [doubling()], settings: { apiKey: "secret" } });
  const headers = { authorization: "Bearer secret", "content-type": "application/json" };

  assert.deepEqual((await app.inject("/hello")).json(), { hello: "you" });
  const echo = await app.inject({ method: "POST", url: "/echo", payload: { own: "parser" } });
  assert.deepEqual(echo.json(), { own: "parser" });

  const inferred = await app.inject({ method: "POST", url: "/ai/infer", headers, payload: "[1,2,3]" });
  assert.deepEqual(inferred.json().output, [2, 4, 6]);
  assert.equal((await app.inject({ method: "POST", url: "/ai/infer", payload: [1, 2, 3] })).statusCode, 401);
  assert.equal((await app.inject("/ai/readyz")).statusCode, 200);
  const wrong = await app.inject({ method: "POST", url: "/ai/infer", headers, payload: "[1]" });
  assert.equal(wrong.json().error.code, "INVALID_INPUT");
  assert.match(
    (await app.inject({ url: "/ai/metrics", headers })).body,
    /sheaf_items_total\{batcher="double",outcome="ok"\} 1/,
  );
});

test("over HTTP/2 a cancelled request is cancelled, and the others of its connection go on", async (t) => {
  const model = gated();
  const app = Fastify({ http2: true });
  await app.register(sheafPlugin as unknown as FastifyPluginAsync<SheafPluginOptions, never>, {
    models: [{ ...model, settings: { maxBatchSize: 1 } }],
  });
  const session = connect(await app.listen({ port: 0, host: "127.0.0.1" }));
  t.after(async () => {
    session.destroy();
    await app.close();
  });
  const post = (body: string): ClientHttp2Stream => {
    const stream = session.request({ ":method": "POST", ":path": "/infer", "content-type": "application/json" });
    stream.resume().end(body);
    return stream;
  };
  const statusOf = async (stream: ClientHttp2Stream): Promise<unknown> =>
    (await once(stream, "response"))[0][":status"];
  const running = statusOf(post("[1,1,1]"));
  await model.started;
  const cancelled = post("[2,2,2]");
  const waiting = async (): Promise<number> => {
    await new Promise((resolve) => setImmediate(resolve));
    const { body } = await app.inject("/metrics");
    return Number(/^sheaf_queue_items\{.*\} (\d+)/m.exec(body)![1]);
  };
  while ((await waiting()) !== 1);
  const last = statusOf(post("[3,3,3]"));
  while ((await waiting()) !== 2);
  cancelled.close(constants.NGHTTP2_CANCEL);
  while ((await waiting()) !== 1);
  model.release();
  assert.deepEqual([await running, await last], [200, 200]);
  assert.match((await app.inject("/metrics")).body, /sheaf_items_total\{batcher="gated",outcome="aborted"\} 1/);
});

test("no model, two models of one name, what is no model, and unknown options are refused", async () => {
  await assert.rejects(async () => Fastify().register(sheafPlugin, { models: [] }), /at least one model/);
  for (const [options, message] of [
    [
      { models: [{ name: "m", run: (items: unknown[]) => items }] },
      /^models\[0\]\.input\.kind must be "text" or .*, got undefined$/,
    ],
    [{ models: [{ ...doubling(), run: 5 }] }, /^models\[0\]\.run must be a batch function or an executor, got 5$/],
    [{ models: doubling() }, /^models must be an array, got an object$/],
    [{ models: [doubling()], setings: {} }, /^unknown option setings; did you mean settings\?$/],
    [
      { models: [doubling()], settings: { maxBatchsize: 3 } },
      /^unknown option settings\.maxBatchsize; did you mean settings\.maxBatchSize\?$/,
    ],
    [
      { models: [{ ...doubling(), settings: { worker: 3 } }] },
      /^unknown option models\[0\]\.settings\.worker; did you mean .*workers\?$/,
    ],
  ] as const)
    // prettier-ignore
    await assert.rejects(createServer(options as never), { message });
  const proxy = { upstream: "http://localhost:1/v1", settings: { maxBatchsize: 3 } };
  await assert.rejects(createProxy(proxy as never), /did you mean settings\.maxBatchSize\?/);
  await assert.rejects(
    async () => Fastify().register(sheafPlugin, { models: [doubling(), doubling()] }),
    /Two models are named double/,
  );
});
