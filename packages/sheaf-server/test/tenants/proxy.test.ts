import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { proxy } from "../../dist/cli/proxy.js";
import { defaultSettings } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";
import type { Problem } from "../../dist/problems/problem.js";
import { KeyBatchers } from "../../dist/proxy/key-batchers.js";
import { proxyDefaults } from "../../dist/settings/settings.js";
import { Callers } from "../../dist/tenants/callers.js";
import { routed } from "../../dist/proxy/key-batcher.js";
import { collected } from "../load/streams.js";
import { embeddingApi, proxying } from "../proxy/proxying.js";
import { opening, post, until } from "../asking.js";
import { bearer, entry, keysFile } from "./keys.js";

test("keys of the proxy's own share the upstream's key and its requests; the upstream never sees them", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, {
    apiKeysFile: keysFile(t, [entry("a"), entry("b"), entry("op", { operator: true })]).path,
    upstreamApiKey: "sk-upstream",
    maxBatchSize: 10,
    maxWaitMs: 60_000,
  });
  const replies = await Promise.all(Array.from({ length: 10 }, (_, i) => proxy.embed(`t${i}`, { key: i % 2 === 0 ? "sk-a" : "sk-b" }))); // prettier-ignore
  assert.deepEqual(replies.map(({ status }) => status), Array(10).fill(200)); // prettier-ignore
  assert.equal(api.requests.length, 1);
  assert.equal(api.requests[0]!.headers["authorization"], "Bearer sk-upstream");
  assert.equal((await proxy.embed("t", { key: "sk-upstream" })).status, 401);
  assert.equal((await proxy.get("/livez")).status, 200);
  assert.equal((await proxy.get("/metrics", bearer("sk-a"))).status, 403);

  assert.equal((await proxy.get("/v1/models", bearer("sk-a"))).status, 403);
  await proxy.get("/v1/models", bearer("sk-op"));
  assert.deepEqual(api.others.map(({ headers }) => headers["authorization"]), ["Bearer sk-upstream"]); // prettier-ignore

  const { text } = await proxy.get("/metrics", bearer("sk-op"));
  assert.match(text, /^sheaf_tenant_items_total\{tenant="a",outcome="ok"\} 5$/m);
});

test("the proxy holds a tenant to its bounds, and lowers its lane", async (t) => {
  const api = await embeddingApi(t);
  const keys = [entry("slow", { itemsPerSecond: 0.01 }), entry("short", { weightPerSecond: 1 }), entry("a")];
  const settings = { apiKeysFile: keysFile(t, keys).path, upstreamApiKey: "sk-upstream", maxWaitMs: 1 };
  const proxy = await proxying(t, api.baseURL, settings);
  assert.equal((await proxy.embed("one", { key: "sk-slow" })).status, 200);
  const refused = await proxy.embed("two", { key: "sk-slow" });
  assert.deepEqual([refused.status, refused.json.error.code], [429, "TENANT_LIMIT"]);
  assert.ok(Number(refused.headers.get("retry-after")) > 90);
  assert.equal((await proxy.embed("a long text ".repeat(1000), { key: "sk-short" })).status, 200);
  assert.match((await proxy.embed("two", { key: "sk-short" })).json.error.message, /a weight of 1 a second/);
  const lowered = await proxy.embed("three", { key: "sk-a", headers: { "x-sheaf-priority": "immediate" } });
  assert.deepEqual([lowered.status, lowered.headers.get("x-sheaf-priority")], [200, "interactive"]);
});

test("with TENANT_BY=header tenants of a gateway share requests: the header goes no further", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, { tenantBy: "header", maxBatchSize: 6, maxWaitMs: 60_000 });
  await Promise.all(
    Array.from({ length: 6 }, (_, i) => proxy.embed(`t${i}`, { headers: { "x-tenant": `c${i % 3}` } })),
  );
  assert.equal(api.requests.length, 1);
  assert.equal(api.requests[0]!.headers["x-tenant"], undefined);
  assert.equal(api.requests[0]!.headers["authorization"], "Bearer sk-a");
  const { text } = await proxy.get("/metrics");
  for (const name of ["c0", "c1", "c2"])
    assert.ok(text.includes(`sheaf_tenant_items_total{tenant="${name}",outcome="ok"} 2`), name);
});

test("tenants of the proxy take turns: behind a flood another's text is in the next request", async (t) => {
  const { opened: released, open: release } = opening();
  const api = await embeddingApi(t, { latencyMs: () => released });
  const settings = {
    tenantBy: "header",
    maxBatchSize: 2,
    upstreamConcurrency: 1,
    schedulerStrategy: "greedy",
  } as const;
  const proxy = await proxying(t, api.baseURL, settings);
  const embed = (text: string, tenant: string) => proxy.embed(text, { headers: { "x-tenant": tenant } });
  const replies = Array.from({ length: 20 }, (_, i) => embed(`f${i}`, "flood"));
  const waiting = async (tenant: string, items: number): Promise<void> => {
    const line = `sheaf_tenant_in_flight_items{tenant="${tenant}"} ${items}\n`;
    while (!(await proxy.get("/metrics")).text.includes(line)) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const counted = [...replies];
  await waiting("flood", 20);
  counted.push(embed("mine", "other"));
  await waiting("other", 1);
  release();
  await Promise.all(counted);
  assert.ok(api.requests[1]!.inputs.includes("mine"), JSON.stringify(api.requests.map(({ inputs }) => inputs)));
});

/** Two keys of the proxy's own before an API that answers when it is told. */
async function heldProxy(t: TestContext, settings: Partial<Settings> = {}) {
  const { opened: released, open: release } = opening();
  const api = await embeddingApi(t, { latencyMs: () => released });
  const keys = { apiKeysFile: keysFile(t, [entry("a"), entry("b"), entry("op", { operator: true })]).path };
  const proxy = await proxying(t, api.baseURL, { ...keys, upstreamApiKey: "sk-upstream", maxWaitMs: 0, ...settings });
  const waiting = async (tenant: string, items: number): Promise<void> => {
    const line = `sheaf_tenant_in_flight_items{tenant="${tenant}"} ${items}\n`;
    await until(async () => (await proxy.get("/metrics", bearer("sk-op"))).text.includes(line));
  };
  return { api, proxy, release, waiting };
}

test("the limits of a key and model hold for any header and query that a caller makes up", async (t) => {
  const { api, proxy, release, waiting } = await heldProxy(t, { upstreamConcurrency: 2 });
  const replies = Array.from(
    { length: 20 },
    (_, i) =>
    post(`${proxy.url}/v1/embeddings?v=${i % 2}`, { model: "tiny", input: `t${i}` }, { "x-foo": String(i), ...bearer("sk-a") }), // prettier-ignore
  );
  await waiting("a", 20);
  release();
  for (const { status } of await Promise.all(replies)) assert.equal(status, 200);
  assert.equal(api.requests.length, 20, "each has headers of its own");
  assert.equal(api.maxInFlight(), 2);
});

test("a 429, a text that is asked for twice and a first caller who hangs up end nothing: the second is answered", async (t) => {
  const { opened: refused, open: refuse } = opening();
  const fault = async (_: unknown, number: number): Promise<object | undefined> => {
    if (number > 1) return undefined;
    await refused;
    return { status: 429, headers: { "retry-after-ms": "1500" } };
  };
  const api = await embeddingApi(t, { fault });
  const { path: apiKeysFile } = keysFile(t, [entry("a"), entry("op", { operator: true })]);
  const settings = {
    apiKeysFile,
    upstreamApiKey: "sk-upstream",
    cacheMaxBytes: 1_000_000,
    maxWaitMs: 60_000,
    maxBatchSize: 2,
  };
  const proxy = await proxying(t, api.baseURL, settings);
  const shown = (line: string): Promise<void> =>
    until(async () => (await proxy.get("/metrics", bearer("sk-op"))).text.includes(line));
  const controller = new AbortController();
  const other = proxy.embed("another text", { key: "sk-a" });
  const first = proxy.embed("the same text", { key: "sk-a", signal: controller.signal }).catch(() => "gone");
  const second = proxy.embed("the same text", { key: "sk-a" });
  await shown('sheaf_tenant_in_flight_items{tenant="a"} 3');
  refuse();
  await shown('sheaf_rate_limit_refusals_total{batcher="upstream"} 1');
  controller.abort();
  assert.equal(await first, "gone");
  for (const { status, json } of await Promise.all([other, second]))
    assert.deepEqual([status, json.data.length], [200, 1]);
});

test("a text counts until the request that has it is answered, also when its caller has hung up", async (t) => {
  const { proxy, release, waiting } = await heldProxy(t, {
    maxBatchSize: 2,
    maxWaitMs: 60_000,
    tenantItemsInFlight: 1,
  });
  const controller = new AbortController();
  const gone = proxy.embed("mine", { key: "sk-a", signal: controller.signal }).catch(() => "gone");
  const other = proxy.embed("other", { key: "sk-b" });
  await waiting("a", 1);
  await waiting("b", 1);
  controller.abort();
  assert.equal(await gone, "gone");
  await until(async () =>
    (await proxy.get("/metrics", bearer("sk-op"))).text.includes('{tenant="a",outcome="aborted"} 1'),
  );
  assert.equal((await proxy.embed("more", { key: "sk-a" })).json.error.code, "TENANT_LIMIT");
  release();
  assert.equal((await other).status, 200);
  await waiting("a", 0);
});

test("a caller who makes up models gets its share of the lanes, and leaves room for others", async (t) => {
  const keyBatchers = new KeyBatchers({ ...defaultSettings, ...proxyDefaults });
  t.after(() => keyBatchers.close(0));
  const callers = new Callers({ ...defaultSettings, apiKeysFile: keysFile(t, [entry("a"), entry("b")]).path }, console);
  t.after(() => callers.close());
  /** How many lanes it gets; their calls wait until the test ends. */
  const lanesOf = (key: string): number => {
    let lanes = 0;
    for (let i = 0; i < 230; i++) {
      const caller = callers.identify((name) => name === "authorization" && `Bearer ${key}`);
      const [call] = routed([{ input: "t", parameters: {} }], { url: "http://127.0.0.1:1/", headers: {} });
      try {
        const lane = keyBatchers.of([], `model ${i} of ${key}`, caller);
        void lane.settle([call!], { caller });
        lanes++;
      } catch (error) {
        assert.equal((error as Problem).code, "QUEUE_FULL");
      }
    }
    return lanes;
  };
  assert.deepEqual([lanesOf("sk-a"), lanesOf("sk-b"), lanesOf("sk-a")], [100, 50, 100]);
});

test("the parameters of a request are read once, however many inputs it has", () => {
  let reads = 0;
  const parameters = { model: "m", long: { toJSON: () => reads++ } };
  const calls = Array.from({ length: 50 }, (_, i) => ({ input: `t${i}`, parameters }));
  const groups = routed(calls, { url: "u", headers: {} }).map(({ group }) => group);
  assert.deepEqual([new Set(groups).size, reads], [1, 1]);
});

test("a file of keys without the upstream's own key is refused, and the other way round", async (t) => {
  const { path } = keysFile(t, [entry("a")]);
  for (const flags of [
    ["--api-keys-file", path],
    ["--upstream-api-key", "sk-upstream"],
  ]) {
    const streams = collected();
    assert.equal(await proxy(["--upstream", "http://127.0.0.1:1/v1", ...flags], streams), 2);
    assert.match(
      streams.err(),
      /sheaf proxy needs both API_KEYS_FILE and UPSTREAM_API_KEY, or neither: callers send keys of the file/,
    );
  }
});
