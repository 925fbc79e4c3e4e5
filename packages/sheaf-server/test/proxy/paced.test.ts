import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { proxying } from "./proxying.js";

const { llmServer }: any = await import(new URL("../../../../test/fakes/llm-server.mjs", import.meta.url).href);

async function rig(t: TestContext, { api = {}, ...settings }: Record<string, unknown> & { api?: object } = {}) {
  const upstream = await llmServer(api);
  t.after(() => upstream.close());
  const proxy = await proxying(t, upstream.baseURL, settings);
  const post = async (
    path: string,
    body: string,
    headers: Record<string, string> = {},
    signal: AbortSignal | null = null,
  ): Promise<{ status: number; headers: Headers; text: string; json: any }> => {
    const all = { "content-type": "application/json", authorization: "Bearer sk-a", ...headers };
    const response = await fetch(proxy.url + path, { method: "POST", headers: all, body, signal });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text.startsWith("{") ? JSON.parse(text) : undefined,
    };
  };
  const metric = async (name: string): Promise<number> =>
    Number(
      new RegExp(`^${name.replaceAll(/[{}]/g, "\\$&")} (\\S+)$`, "m").exec((await proxy.get("/metrics")).text)?.[1],
    );
  return { upstream, proxy, post, metric };
}

const chat = (more: object = {}): string =>
  JSON.stringify({ model: "m", messages: [{ role: "user", content: "one two three" }], ...more });
const used = `sheaf_rate_limit_used_total{batcher="llm",kind="weight"}`;

test("a body goes upstream byte for byte, with its headers, and the answer counts by its usage", async (t) => {
  const { upstream, post, metric } = await rig(t);
  const bodies = {
    "/v1/chat/completions": chat({ seed: 1 }).replace("1}", '12345678901234567890 , "x":1.0}'),
    "/v1/completions": JSON.stringify({ model: "m", prompt: "a b", stream: true }),
    "/v1/responses?a=b": JSON.stringify({ model: "m", input: "a b" }),
    "/v1/messages": chat({ max_tokens: 10 }),
  };
  for (const [path, body] of Object.entries(bodies)) {
    const { status } = await post(path, body, {
      "idempotency-key": "k",
      "user-agent": "u",
      "x-sheaf-priority": "interactive",
    });
    assert.equal(status, 200);
    const sent = upstream.requests.at(-1);
    assert.equal(sent.bytes.toString(), body);
    assert.deepEqual([sent.url, sent.headers["idempotency-key"], sent.headers["user-agent"]], [path, "k", "u"]);
    assert.equal(sent.headers["x-sheaf-priority"], undefined);
  }
  // The completion has no usage in its stream: its two texts count by their length.
  assert.equal(await metric(used), 10 + 4 + 8 + 11);
});

test("a chat stream is asked for its usage, which only a client that asked for it sees", async (t) => {
  const { upstream, post, metric } = await rig(t);
  const { text } = await post("/v1/chat/completions", chat({ stream: true }));
  assert.match(upstream.requests[0].bytes.toString(), /^\{"stream_options":\{"include_usage":true\},"model":"m"/);
  assert.doesNotMatch(text, /"usage"/);
  assert.match(text, /three[^]*data: \[DONE\]\n\n$/);
  assert.equal(await metric(used), 10);
  const asked = chat({ stream: true, stream_options: { include_usage: true } });
  const whole = await post("/v1/chat/completions", asked);
  assert.equal(upstream.requests[1].bytes.toString(), asked);
  assert.match(whole.text, /"usage":\{"prompt_tokens":7/);
});

test("a stream's chunks pass as they come", async (t) => {
  const gates = Array.from({ length: 6 }, () => deferred());
  const { proxy } = await rig(t, { api: { each: (index: number) => gates[index]!.promise } });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${proxy.url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: chat({ stream: true }),
  });
  const reader = response.body!.getReader();
  for (const [index, word] of ["one", "two", "three"].entries()) {
    gates[index]!.resolve(undefined);
    assert.match(Buffer.from((await reader.read()).value!).toString(), new RegExp(word));
  }
  for (const gate of gates) gate.resolve(undefined);
});

test("a client that hangs up ends its request to the upstream", async (t) => {
  const never = deferred();
  const arrived = deferred();
  const { upstream, post } = await rig(t, { api: { before: () => (arrived.resolve(undefined), never.promise) } });
  const gone = new AbortController();
  const call = post("/v1/messages", chat(), {}, gone.signal);
  await arrived.promise;
  gone.abort();
  await assert.rejects(call);
  await upstream.requests[0].closed;
});

test("a call that has no room within its deadline gets 429 with the true Retry-After; a refused one goes again", async (t) => {
  const once429 = (_: unknown, number: number) =>
    number === 1 ? { status: 429, headers: { "retry-after-ms": "50" } } : undefined;
  const { upstream, post, metric } = await rig(t, { api: { fault: once429 }, upstreamTokensPerMinute: 6000 });
  assert.equal((await post("/v1/chat/completions", chat({ max_tokens: 50 }))).status, 200);
  assert.equal(upstream.requests.length, 2);
  assert.equal(await metric(`sheaf_rate_limit_refusals_total{batcher="llm"}`), 1);
  assert.equal(await metric(`sheaf_upstream_refusals_total{model="m"}`), 1);
  assert.equal(await metric(`sheaf_upstream_limit_per_minute{model="m",kind="tokens"}`), 6000);
  assert.equal(await metric(`sheaf_upstream_limit_used_total{model="m",kind="tokens"}`), 10);
  assert.equal(await metric(`sheaf_upstream_waiting_items{model="m",lane="live"}`), 0);
  const late = await post("/v1/chat/completions", chat({ max_tokens: 5000 }), { "x-request-timeout-ms": "1000" });
  assert.equal(late.status, 429);
  const retryMs = Number(late.headers.get("retry-after-ms"));
  assert.ok(retryMs > 1000 && retryMs <= 60_000, `${retryMs}`);
  assert.equal(Number(late.headers.get("retry-after")), Math.ceil(retryMs / 1000));
  assert.equal(upstream.requests.length, 2, "it was never sent");
});

test("what the upstream refuses otherwise is the caller's, in its words; a 429 past the deadline too", async (t) => {
  const body = { error: { message: "no such model" } };
  const faults = [
    { status: 404, body },
    { status: 429, headers: { "retry-after": "100" }, body },
  ];
  const { post } = await rig(t, { api: { fault: () => faults.shift() } });
  const missing = await post("/v1/chat/completions", chat());
  assert.deepEqual([missing.status, missing.json], [404, body]);
  const refused = await post("/v1/chat/completions", chat());
  assert.deepEqual([refused.status, refused.json, refused.headers.get("retry-after")], [429, body, "100"]);
});

test("a body above MAX_BODY_BYTES passes whole, and so does one that is not JSON", async (t) => {
  const { upstream, post } = await rig(t, { maxBodyBytes: 1000 });
  const long = chat({ pad: "x".repeat(300_000) });
  assert.equal((await post("/v1/chat/completions", long)).status, 200);
  assert.equal(upstream.requests[0].bytes.toString(), long);
});

test("only POST on exactly these paths is paced", async (t) => {
  const { post, proxy, metric } = await rig(t, { api: { fault: () => ({ status: 200, body: {} }) } });
  for (const path of ["/v1/chat/completions/", "/v1/messages/count_tokens", "/v2/messages"]) assert.equal((await post(path, chat())).status, 200); // prettier-ignore
  assert.equal((await proxy.get("/v1/responses")).status, 200);
  assert.equal(await metric(`sheaf_rate_limit_used_total{batcher="llm",kind="runs"}`), NaN);
});

test("a key opens what its entry names, from either header, and the upstream's key goes in the same", async (t) => {
  const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
  const file = join(mkdtempSync(join(tmpdir(), "sheaf-")), "keys.json");
  const keys = [
    { name: "plain", sha256: sha256("k-plain") },
    { name: "chat", sha256: sha256("k-chat"), opens: ["/v1/messages", "/v1/responses"] },
  ];
  writeFileSync(file, JSON.stringify({ keys }));
  const { upstream, proxy, post } = await rig(t, { apiKeysFile: file, upstreamApiKey: "sk-up" });
  const statusOf = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await post(path, chat({ input: "a" }), headers)).status;
  assert.equal(await statusOf("/v1/messages", { authorization: "Bearer k-plain" }), 403);
  assert.equal(await statusOf("/v1/chat/completions", { authorization: "Bearer k-chat" }), 403);
  assert.equal(await statusOf("/v1/responses", { authorization: "Bearer k-chat" }), 200);
  assert.deepEqual(
    [upstream.requests[0].headers.authorization, upstream.requests[0].headers["x-api-key"]],
    ["Bearer sk-up", undefined],
  );
  const headers = { "content-type": "application/json", "x-api-key": "k-chat" };
  const response = await fetch(`${proxy.url}/v1/messages`, { method: "POST", headers, body: chat() });
  assert.equal(response.status, 200);
  assert.deepEqual(
    [upstream.requests[1].headers.authorization, upstream.requests[1].headers["x-api-key"]],
    [undefined, "sk-up"],
  );
});

function deferred(): { promise: Promise<unknown>; resolve: (value: unknown) => void } {
  let resolve!: (value: unknown) => void;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
