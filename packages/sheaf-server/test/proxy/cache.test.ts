import assert from "node:assert/strict";
import { test } from "node:test";
import { entry, keysFile } from "../tenants/keys.js";
import { opening, until } from "../asking.js";
import { embeddingApi, proxying, vectorOf } from "./proxying.js";

const cached = { cacheMaxBytes: 1_000_000, maxWaitMs: 1 };
const cacheOf = ({ headers }: { headers: Headers }): string | null => headers.get("x-sheaf-cache");

test("a text that was asked for before is answered without the upstream, in the same words", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, cached);
  const [ran, kept] = [await proxy.embed(["one", "two"]), await proxy.embed(["one", "two"])];
  assert.deepEqual([cacheOf(ran), cacheOf(kept), api.requests.length], ["miss", "hit", 1]);
  assert.equal(kept.text, ran.text);
  const partly = await proxy.embed(["two", "three"]);
  assert.equal(cacheOf(partly), "partial");
  assert.deepEqual(partly.json.data.map(({ embedding }: any) => embedding), [vectorOf("two"), vectorOf("three")]); // prettier-ignore
  assert.deepEqual(api.requests[1]!.inputs, ["three"]);
  const { text } = await proxy.get("/metrics");
  assert.match(text, /^sheaf_cache_hits_total\{batcher="upstream"\} 3$/m);
});

test("a tenant never gets what another one was answered", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, cached);
  const differing = [
    {}, { key: "sk-b" }, { headers: { "openai-organization": "o" } }, { headers: { "x-team": "t" } }, { model: "other" },
    { dimensions: 3 }, { encoding_format: "base64" }, { user: "u" },
  ]; // prettier-ignore
  for (const one of differing) assert.equal(cacheOf(await proxy.embed("same", one)), "miss");
  for (const one of differing) assert.equal(cacheOf(await proxy.embed("same", one)), "hit");
  assert.equal(api.requests.length, differing.length);
});

test("a refusal is not kept", async (t) => {
  const api = await embeddingApi(t, { isPoison: (text: unknown) => text === "bad" });
  const proxy = await proxying(t, api.baseURL, cached);
  const refused = [await proxy.embed("bad"), await proxy.embed("bad")];
  for (const reply of refused) assert.deepEqual([reply.status >= 400, cacheOf(reply)], [true, "miss"]);
});

test("keys of the proxy's own share the upstream's key, and no results", async (t) => {
  const { opened: released, open: release } = opening();
  const api = await embeddingApi(t, { latencyMs: () => released });
  const { path: apiKeysFile } = keysFile(t, [entry("a"), entry("b")]);
  const proxy = await proxying(t, api.baseURL, { ...cached, apiKeysFile, upstreamApiKey: "sk-upstream" });
  const first = ["sk-a", "sk-b", "sk-a"].map((key) => proxy.embed("same", { key }));
  await until(() => api.requests.flatMap(({ inputs }) => inputs).length >= 2);
  release();
  for (const reply of await Promise.all(first)) assert.deepEqual([reply.status, cacheOf(reply)], [200, "miss"]);
  for (const key of ["sk-a", "sk-b"]) assert.equal(cacheOf(await proxy.embed("same", { key })), "hit");
  assert.equal(api.requests.flatMap(({ inputs }) => inputs).length, 2);
});
