import assert from "node:assert/strict";
import { test } from "node:test";
import { embeddingApi, proxying } from "./proxying.js";

test("a model's name of a megabyte goes by itself: nothing of it is kept", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  const { status } = await proxy.embed("a", { model: "m".repeat(1_000_000) });
  assert.equal(status, 200);
  const { text } = await proxy.get("/metrics");
  assert.doesNotMatch(text, /sheaf_items_total\{batcher="upstream",outcome="ok"\} 1\n/);
});

test("names of an object's prototype are parameters like others", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  const body = `{"model":"m","input":"a","__proto__":{"x":1},"constructor":2}`;
  const headers = { "content-type": "application/json", authorization: "Bearer sk-a" };
  const init = { method: "POST", headers, body };
  const replies = await Promise.all([fetch(`${proxy.url}/v1/embeddings`, init), proxy.embed("b", { model: "m" })]);
  for (const reply of replies) assert.equal(reply.status, 200);
  const sent = api.requests.map((request) => JSON.stringify(request.body)).sort();
  assert.deepEqual(sent, [
    '{"model":"m","__proto__":{"x":1},"constructor":2,"input":["a"]}',
    '{"model":"m","input":["b"]}',
  ]);
});

test("when calls of 200 keys wait, another key gets Retry-After, and finds room when one has gone", async (t) => {
  let isOpen = false;
  const api = await embeddingApi(t, { fault: () => (isOpen ? undefined : "hang") });
  const proxy = await proxying(t, api.baseURL, { maxWaitMs: 0 });
  const controller = new AbortController();
  const held = Array.from({ length: 200 }, (_, i) =>
    proxy.embed("a", { key: `sk-${i}`, signal: controller.signal }).catch(() => undefined),
  );
  for (const call of held) void call.then((reply) => assert.equal(isOpen, true, JSON.stringify(reply?.json)));
  while (api.requests.length < 200) await new Promise((resolve) => setTimeout(resolve, 5));
  const refused = await proxy.embed("a", { key: "one-more" });
  assert.equal(refused.status, 429);
  assert.equal(refused.json.error.code, "QUEUE_FULL");
  assert.equal(refused.headers.get("retry-after"), "1");
  isOpen = true;
  controller.abort();
  await Promise.all(held);
  let status = 429;
  while (status === 429) ({ status } = await proxy.embed("a", { key: "one-more" }));
  assert.equal(status, 200);
});
