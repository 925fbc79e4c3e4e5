import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import type { ModelDefinition } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";
import { serving, doubling, gated, measuringTexts, type Serving } from "../server/serving.js";
import { until } from "../asking.js";
import { bearer, entry, itemsBy, keysFile, sha256 } from "./keys.js";

const servingKeys = (
  t: TestContext,
  keys: readonly object[],
  model: ModelDefinition = doubling(),
  settings: Partial<Settings> = {},
): Promise<Serving> => serving(t, [model], { apiKeysFile: keysFile(t, keys).path, ...settings });

/** Items of tenants that wait or run. */
async function itemsIn(server: Serving): Promise<number> {
  const { text } = await server.get("/metrics", bearer("own"));
  const inFlight = [...text.matchAll(/^sheaf_tenant_in_flight_items\{.*\} (\d+)$/gm)];
  return inFlight.reduce((sum, [, items]) => sum + Number(items), 0);
}

/** Runs one item at a time, when told, and notes whose came: the first number of each item. */
function ordered(): ModelDefinition & { release(): void; readonly started: Promise<void>; readonly order: number[] } {
  const gate = gated("ordered");
  const order: number[] = [];
  const { run } = gate as unknown as { run(items: Float32Array[]): Promise<Float32Array[]> };
  return {
    ...gate,
    order,
    settings: { maxBatchSize: 1 },
    run: (items: Float32Array[]) => {
      order.push(items[0]![0]!);
      return run(items);
    },
  };
}

test("without a key, with an unknown one and with a hash instead of a key: 401; health needs none; API_KEY stays a key", async (t) => {
  const server = await servingKeys(t, [entry("a")], doubling(), { apiKey: "own" });
  for (const headers of [{}, bearer("sk-b"), bearer("sk-A"), { authorization: "sk-a" }]) {
    const { status, json } = await server.post("/infer", [1, 2, 3], headers);
    assert.deepEqual([status, json.error.code], [401, "UNAUTHORIZED"]);
  }
  for (const key of ["sk-a", "own"]) assert.equal((await server.post("/infer", [1, 2, 3], bearer(key))).status, 200);
  assert.equal((await server.get("/livez")).status, 200);
});

test("metrics, the page's figures, and load and unload are for operators: 403 for any other key", async (t) => {
  const server = await servingKeys(t, [entry("a"), entry("op", { operator: true })], doubling(), { apiKey: "own" });
  for (const path of ["/metrics", "/dashboard/events", "/metrics/"]) {
    const { status, json } = await server.get(path, bearer("sk-a"));
    assert.deepEqual([status, json.error.code, json.error.type], [403, "FORBIDDEN", "permission_error"], path);
  }
  for (const key of ["sk-op", "own"]) assert.equal((await server.get("/metrics", bearer(key))).status, 200);
  const { paths } = (await server.get("/openapi.json", bearer("sk-a"))).json;
  assert.ok("403" in paths["/metrics"].get.responses && !("403" in paths["/infer"].post.responses));
});

test("a request for a higher lane than its key's is lowered and the reply says so, on every route", async (t) => {
  const server = await servingKeys(
    t,
    [entry("a"), entry("b", { highestLane: "bulk" }), entry("c", { highestLane: "immediate" })],
    doubling(),
    { apiKey: "own" },
  );
  const laneOf = async (key: string, asked?: string): Promise<string | null> => {
    const headers = { ...bearer(key), ...(asked === undefined ? {} : { "x-sheaf-priority": asked }) };
    const reply = await server.post("/infer", [1, 2, 3], headers);
    assert.equal(reply.status, 200);
    return reply.headers.get("x-sheaf-priority");
  };
  assert.equal(await laneOf("sk-a", "immediate"), "interactive");
  assert.equal(await laneOf("sk-a", "interactive"), null);
  assert.equal(await laneOf("sk-a", "bulk"), null);
  assert.equal(await laneOf("sk-b"), "bulk");
  assert.equal(await laneOf("sk-c", "immediate"), null);
  assert.equal(await laneOf("own", "immediate"), null);
  const body = {
    inputs: [{ name: "input", shape: [1, 3], datatype: "FP32", data: [1, 2, 3] }],
    parameters: { priority: 1 },
  };
  const v2 = await server.post("/v2/models/double/infer", body, bearer("sk-a"));
  assert.deepEqual([v2.status, v2.headers.get("x-sheaf-priority")], [200, "interactive"]);
});

test("tenants take turns: behind a flood of one key, another's request is the next but one", async (t) => {
  const model = ordered();
  const server = await servingKeys(t, [entry("flood"), entry("a"), entry("b", { share: 3 })], model);
  const ask = (key: string, mark: number): Promise<unknown> => server.post("/infer", [mark, 0, 0], bearer(key));
  const replies = [ask("sk-flood", 0)];
  await model.started;
  for (let i = 0; i < 30; i++) replies.push(ask("sk-flood", 1));
  await until(() => server.models.all[0]!.stats().queued === 30);
  replies.push(ask("sk-a", 2));
  await until(() => server.models.all[0]!.stats().queued === 31);
  for (let i = 0; i < 9; i++) replies.push(ask("sk-b", 3));
  await until(() => server.models.all[0]!.stats().queued === 40);
  model.release();
  await Promise.all(replies);
  assert.ok(model.order.indexOf(2) <= 6, model.order.join());
  // With three times the share of the flood, b's nine items go among three of it, or four.
  const first = model.order.slice(1, model.order.lastIndexOf(3) + 1);
  const floods = first.filter((mark) => mark === 1).length;
  assert.ok(floods >= 2 && floods <= 5, model.order.join());
});

test("a flood is refused by its own room, with its name; another key's request is let in", async (t) => {
  const model = ordered();
  const server = await servingKeys(t, [entry("flood"), entry("a")], model, { queueMaxSize: 20 });
  const running = server.post("/infer", [0, 0, 0], bearer("sk-flood"));
  await model.started;
  const replies = Array.from({ length: 40 }, () => server.post("/infer", [1, 0, 0], bearer("sk-flood")));
  const arrived = (count: number): Promise<void> =>
    until(() => {
      const { queued, items } = server.models.all[0]!.stats();
      return queued + items.rejected === count;
    });
  await arrived(40);
  const other = server.post("/infer", [2, 0, 0], bearer("sk-a"));
  await arrived(41);
  model.release();
  assert.equal((await other).status, 200);
  await running;
  const refused = (await Promise.all(replies)).filter(({ status }) => status !== 200);
  assert.ok(refused.length >= 20, String(refused.length));
  for (const { status, json, headers } of refused) {
    assert.deepEqual([status, json.error.code], [429, "QUEUE_FULL"]);
    assert.match(json.error.message, /The room of flood in the queue of ordered is full|QUEUE_MAX_SIZE/);
    assert.ok(Number(headers.get("retry-after-ms")) >= 1);
  }
});

test("over a bound of its own a tenant gets 429 with its own Retry-After, and no other does", async (t) => {
  const model = gated();
  const server = await servingKeys(
    t,
    [entry("slow", { itemsPerSecond: 0.01 }), entry("narrow", { itemsInFlight: 2 }), entry("free")],
    model,
    { apiKey: "own" },
  );
  const ask = (key: string, inputs = 1) =>
    server.post("/infer", { inputs: Array.from({ length: inputs }, () => [1, 2, 3]) }, bearer(key));
  const replies = [ask("sk-slow"), ask("sk-narrow", 2)];
  await until(async () => (await itemsIn(server)) === 3);
  const slow = await ask("sk-slow");
  assert.equal(slow.json.error.code, "TENANT_LIMIT");
  assert.match(slow.json.error.message, /^slow may send 0\.01 items a second\. Retry in \d+ ms\.$/);
  assert.ok(Number(slow.headers.get("retry-after")) >= 95, slow.headers.get("retry-after")!);
  const narrow = await ask("sk-narrow");
  assert.match(narrow.json.error.message, /^narrow may send at most 2 items in flight, 2 are\./);
  replies.push(ask("sk-free", 5));
  model.release();
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
  assert.equal((await ask("sk-narrow")).status, 200);
});

test("an item counts until its run ends: who hangs up or gives up has no room for more", async (t) => {
  for (const ending of ["hang up", "timeout"] as const) {
    const model = gated();
    const server = await servingKeys(t, [entry("a", { itemsInFlight: 2 })], model, { apiKey: "own" });
    const controller = new AbortController();
    const inputs = [[1, 2, 3], [4, 5, 6]]; // prettier-ignore
    const headers = { ...bearer("sk-a"), ...(ending === "timeout" && { "x-request-timeout-ms": "60" }) };
    const given = server.post("/infer", { inputs }, headers, controller.signal).then(({ status }) => status, () => "gone"); // prettier-ignore
    await model.started;
    if (ending === "hang up") controller.abort();
    assert.equal(await given, ending === "hang up" ? "gone" : 200);
    // Its own outcome is there, and its run goes on.
    await until(async () => {
      const outcome = ending === "hang up" ? "aborted" : "timeout";
      const { text } = await server.get("/metrics", bearer("own"));
      return text.includes(`sheaf_tenant_items_total{tenant="a",outcome="${outcome}"} 2`);
    });
    assert.equal(await itemsIn(server), 2);
    const refused = await server.post("/infer", [1, 2, 3], bearer("sk-a"));
    assert.match(refused.json.error.message, /^a may send at most 2 items in flight, 2 are\./);
    model.release();
    await until(async () => (await itemsIn(server)) === 0);
    assert.equal((await server.post("/infer", [1, 2, 3], bearer("sk-a"))).status, 200);
  }
});

test("TENANT_ITEMS_IN_FLIGHT holds for every key that says nothing else", async (t) => {
  const model = gated();
  const server = await servingKeys(t, [entry("a"), entry("b", { itemsInFlight: 9 })], model, {
    tenantItemsInFlight: 1,
    apiKey: "own",
  });
  const replies = ["sk-a", "sk-b"].map((key) => server.post("/infer", [1, 2, 3], bearer(key)));
  await until(async () => (await itemsIn(server)) === 2);
  assert.equal((await server.post("/infer", [1, 2, 3], bearer("sk-a"))).status, 429);
  const second = server.post("/infer", [1, 2, 3], bearer("sk-b"));
  model.release();
  for (const reply of await Promise.all([...replies, second])) assert.equal(reply.status, 200);
});

test("/metrics has a bounded number of series for any number of tenants, and counts every item", async (t) => {
  const names = Array.from({ length: 60 }, (_, i) => `tenant ${i}`);
  const server = await servingKeys(t, [...names.map((name) => entry(name)), entry("op", { operator: true })]);
  for (const [i, name] of names.entries())
    for (let n = 0; n <= (i === 59 ? 50 : i % 3); n++) {
      const { status } = await server.post("/infer", [1, 2, 3], bearer(`sk-${name}`));
      assert.equal(status, 200);
    }
  const { text } = await server.get("/metrics", bearer("sk-op"));
  assert.equal(text.match(/^sheaf_tenant_items_total\{/gm)!.length, 21 * 5);
  const ok = itemsBy(text, "ok");
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  assert.equal(sum(Object.values(ok)), sum(names.map((_, i) => (i === 59 ? 51 : 1 + (i % 3)))));
  // Its first items count among the others, until it is clearly busier than one of those shown.
  assert.ok(ok["tenant 59"]! >= 40 && ok["(others)"]! > 0, JSON.stringify(ok));
});

/** A text's length as its vector; a text that says so fails. */
const failingTexts = (): ModelDefinition => {
  const texts = measuringTexts();
  const run = texts.run as (texts: string[]) => object[];
  return {
    ...texts,
    run: (items: string[]) => run(items).map((result, i) => (items[i] === "fail" ? new Error("it fails") : result)),
  };
};

test("a list that fails counts each item with its own outcome, also one that is longer than the queue", async (t) => {
  const settings = { apiKey: "own", queueMaxSize: 8 };
  const server = await servingKeys(t, [entry("a"), entry("b")], failingTexts(), settings);
  const embed = (key: string, input: string[]) =>
    server.post("/v1/embeddings", { model: "measure", input }, bearer(key));
  const short = await embed("sk-a", ["x", "fail", "y", "fail", "z"]);
  assert.equal(short.status, 500, short.text);
  // The last piece fails, when all others have been answered.
  const long = await embed("sk-b", [...Array.from({ length: 20 }, (_, i) => `t${i}`), "fail"]);
  assert.equal(long.status, 500, long.text);
  const { text } = await server.get("/metrics", bearer("own"));
  const [ok, error] = [itemsBy(text, "ok"), itemsBy(text, "error")];
  assert.deepEqual([ok["a"], error["a"], ok["b"]! + error["b"]!], [3, 2, 21]);
  // Two pieces of two run at a time.
  assert.ok(error["b"]! >= 1 && error["b"]! <= 4, `${error["b"]} failed`);
});

test("a replaced file counts without a restart; a wrong one changes nothing; a request of a key that is gone gets 401", async (t) => {
  const file = keysFile(t, [entry("a")]);
  const server = await serving(t, [doubling()], { apiKeysFile: file.path });
  const statusOf = async (key: string): Promise<number> => (await server.post("/infer", [1, 2, 3], bearer(key))).status;
  assert.deepEqual([await statusOf("sk-a"), await statusOf("sk-b")], [200, 401]);
  file.write({ keys: [entry("b")] });
  await until(async () => (await statusOf("sk-b")) === 200);
  assert.equal(await statusOf("sk-a"), 401);
  file.write("{");
  // The one after it is read after it.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal(await statusOf("sk-b"), 200);
  file.write({ keys: [entry("b"), entry("c")] });
  await until(async () => (await statusOf("sk-c")) === 200);
});

test("the page's events end when the operator's key is replaced, or is an operator's no longer", async (t) => {
  const file = keysFile(t, [
    entry("a", { operator: true }),
    entry("b", { operator: true }),
    entry("c", { operator: true }),
  ]);
  const server = await serving(t, [doubling()], { apiKeysFile: file.path });
  const events = await Promise.all(
    ["a", "b", "c"].map(async (name) => {
      const response = await fetch(`${server.url}/dashboard/events`, { headers: bearer(`sk-${name}`) });
      assert.equal(response.status, 200);
      return { response, ended: response.text().then(() => undefined, () => undefined) }; // prettier-ignore
    }),
  );
  let isOpen = true;
  void events[2]!.ended.then(() => (isOpen = false));
  file.write({ keys: [{ ...entry("a", { operator: true }), sha256: sha256("sk-a2") }, entry("b"), entry("c", { operator: true })] }); // prettier-ignore
  await Promise.all(events.slice(0, 2).map(({ ended }) => ended));
  assert.equal((await server.get("/metrics", bearer("sk-a2"))).status, 200);
  assert.ok(isOpen, "of a key that stays");
});

test("names with slashes are no other key's tenants", async (t) => {
  const keys = [
    entry("acme", { itemsPerSecond: 100 }),
    entry("acme/eu"),
    entry("acme%2Feu"),
    entry("op", { operator: true }),
  ];
  const server = await servingKeys(t, keys, doubling(), {
    tenantBy: "header",
    apiKey: "own",
    tenantItemsPerSecond: 0.01,
  });
  const pairs = [["sk-acme", "eu/c"], ["sk-acme/eu", "c"], ["sk-acme%2Feu", "c"], ["own", "acme/eu/c"], ["own", "c"]]; // prettier-ignore
  for (const [key, tenant] of pairs) {
    const { status, text } = await server.post("/infer", [1, 2, 3], { ...bearer(key!), "x-tenant": tenant! });
    assert.equal(status, 200, text);
  }
  const { text } = await server.get("/metrics", bearer("sk-op"));
  const names = ["API_KEY/acme/eu/c", "API_KEY/c", "acme%252Feu/c", "acme%2Feu/c", "acme/eu/c"];
  assert.deepEqual(itemsBy(text, "ok"), { ...Object.fromEntries(names.map((name) => [name, 1])), "(others)": 0 });
});

test("TENANT_BY=header: a gateway names the tenant; callers with the same name in two products are two tenants", async (t) => {
  const server = await servingKeys(t, [entry("p"), entry("q"), entry("op", { operator: true })], doubling(), {
    tenantBy: "header",
    tenantHeader: "x-customer",
  });
  const ask = (key: string, customer?: string) =>
    server.post("/infer", [1, 2, 3], {
      ...bearer(key),
      ...(customer === undefined ? {} : { "x-customer": customer }),
    });
  for (const [key, customer] of [["p", "1"], ["q", "1"], ["q", "1"], ["p", undefined]] as const)
    assert.equal((await ask(`sk-${key}`, customer)).status, 200); // prettier-ignore
  const { status, json } = await ask("sk-p", "x".repeat(257));
  assert.deepEqual([status, json.error.param], [422, "x-customer"]);
  const { text } = await server.get("/metrics", bearer("sk-op"));
  assert.deepEqual(itemsBy(text, "ok"), { "p/1": 1, "q/1": 2, "p/(none)": 1, "(others)": 0 });
});

test("made-up users do not escape the bounds of their key", async (t) => {
  const server = await servingKeys(t, [entry("p", { itemsPerSecond: 0.01 })], measuringTexts(), { tenantBy: "user" });
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "sk-p", maxRetries: 0 });
  const embed = (user: string) => client.embeddings.create({ model: "measure", input: "a text", user });
  assert.equal((await embed("u1")).data.length, 1);
  await assert.rejects(embed("u2"), (error: InstanceType<typeof OpenAI.APIError>) => {
    assert.equal(error.status, 429);
    assert.match(error.message, /0\.01 items a second/);
    return true;
  });
});

test("TENANT_BY=user: OpenAI's user is the tenant, without keys too", async (t) => {
  const server = await serving(t, [measuringTexts()], { tenantBy: "user", tenantItemsPerSecond: 0.01 });
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const embed = (user?: string) =>
    client.embeddings.create({ model: "measure", input: ["a", "b", "c", "d", "e"], user: user! });
  await embed("u1");
  await assert.rejects(embed("u1"), /u1 may send 0\.01 items a second/);
  await embed("u2");
  await embed();
  const { text } = await server.get("/metrics");
  const [ok, rejected] = [itemsBy(text, "ok"), itemsBy(text, "rejected")];
  assert.deepEqual([ok["u1"], rejected["u1"], ok["(none)"]], [5, 5, 5]);
});

test("without a file of keys nothing is said of tenants", async (t) => {
  const server = await serving(t, [doubling()], { apiKey: "own" });
  await server.post("/infer", [1, 2, 3], bearer("own"));
  assert.doesNotMatch((await server.get("/metrics", bearer("own"))).text, /tenant/);
});
