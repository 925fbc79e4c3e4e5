import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import { sheafPlugin } from "../../dist/index.js";
import { doubling } from "./serving.js";

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

test("no model, and two models of one name, are refused", async () => {
  await assert.rejects(async () => Fastify().register(sheafPlugin, { models: [] }), /at least one model/);
  await assert.rejects(
    async () => Fastify().register(sheafPlugin, { models: [doubling(), doubling()] }),
    /Two models are named double/,
  );
});
