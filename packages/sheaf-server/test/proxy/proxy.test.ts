import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { test } from "node:test";
import { createProxy, defaultSettings } from "../../dist/index.js";
import { batchableRequest } from "../../dist/proxy/embeddings-request.js";
import { upstreamHeaders, upstreamUrl } from "../../dist/proxy/target.js";
import { deserted, listen, post, until, type Reply } from "../asking.js";
import { embeddingApi, proxying, vectorOf } from "./proxying.js";

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);
/** A request whose path goes out as it is written. */
const raw = (origin: string, path: string, body?: string): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    const method = body === undefined ? "GET" : "POST";
    const headers = { "content-type": "application/json" };
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode!, text }));
    });
    sent.on("error", reject).end(body);
  });
test("200 requests of one text share few requests to the upstream; each gets its own vector, index 0, and its tokens", async (t) => {
  const api = await embeddingApi(t);
  // Nothing goes before a request is full: how fast the calls come does not matter.
  const proxy = await proxying(t, api.baseURL, { maxBatchSize: 50, maxWaitMs: 60_000 });
  const replies = await Promise.all(texts(200).map((text) => proxy.embed(text)));
  for (const [i, { status, json }] of replies.entries()) {
    assert.equal(status, 200);
    assert.deepEqual(json.data, [{ object: "embedding", index: 0, embedding: vectorOf(`text ${i}`) }]);
    assert.equal(json.model, "tiny");
    assert.equal(json.object, "list");
  }
  const tokens = replies.reduce((sum, { json }) => sum + json.usage.total_tokens, 0);
  assert.equal(tokens, 400, "two for each text, as the upstream counted");
  assert.equal(api.requests.length, 4);
});

test("a list is answered in its order, split over requests where it is longer than one takes", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, { maxBatchSize: 20 });
  const { json } = await proxy.embed(texts(50), { encoding_format: "float" });
  assert.deepEqual(
    json.data.map(({ index, embedding }: any) => [index, embedding]),
    texts(50).map((text, index) => [index, vectorOf(text)]),
  );
  assert.equal(api.requests.length, 3);
});

test("the key, the organisation and every header that is not known go to the upstream; those of the client's library do not", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  await proxy.embed("a", { headers: { "openai-organization": "org", "x-title": "t", "x-stainless-lang": "js" } });
  const { headers } = api.requests[0]!;
  assert.equal(headers["authorization"], "Bearer sk-a");
  assert.equal(headers["openai-organization"], "org");
  assert.equal(headers["x-title"], "t");
  assert.equal(headers["x-stainless-lang"], undefined);
});

test("priority, in the body or as a header, is for the queue: it neither separates calls nor goes on", async (t) => {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const api = await embeddingApi(t, { latencyMs: () => released });
  const settings = { upstreamConcurrency: 1, maxBatchSize: 2, schedulerStrategy: "auto" } as const;
  const proxy = await proxying(t, api.baseURL, settings);
  const gauge = (text: string, name: string): number =>
    Number(new RegExp(`^sheaf_${name}\\{.*\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const replies: Promise<Reply>[] = [];
  const sends = async (queued: number, ...call: Parameters<typeof proxy.embed>): Promise<void> => {
    replies.push(proxy.embed(...call));
    for (let text = ""; gauge(text, "queue_items") !== queued || gauge(text, "in_flight_batches") !== 1;)
      ({ text } = await proxy.get("/metrics"));
  };
  await sends(0, "running");
  await sends(1, "later", { priority: 7 });
  await sends(2, "none");
  await sends(3, "header", { priority: 7, headers: { "x-sheaf-priority": "interactive" } });
  await sends(4, "bulk", { headers: { "x-sheaf-priority": "bulk" } });
  await sends(5, "zero", { priority: 0 });
  release();
  for (const { status, text } of await Promise.all(replies)) assert.equal(status, 200, text);
  assert.deepEqual(
    api.requests.map(({ inputs }) => inputs),
    [["running"], ["none", "header"], ["zero", "later"], ["bulk"]],
  );
  for (const { body } of api.requests) assert.ok(!("priority" in body), JSON.stringify(body));
  // What is no integer is the upstream's to answer.
  await proxy.embed("text", { priority: "soon" });
  assert.equal(api.requests.at(-1)!.body.priority, "soon");
});

test("a poisoned text is refused in the upstream's words, with the caller's own index; its batch-mates are answered", async (t) => {
  const api = await embeddingApi(t, { latencyMs: 5, isPoison: (text: string) => text === "poison" });
  const proxy = await proxying(t, api.baseURL, { upstreamConcurrency: 1 });
  const fine = texts(60).map((text) => proxy.embed(text));
  const [single, list] = await Promise.all([proxy.embed("poison"), proxy.embed(["x", "y", "poison"])]);
  assert.ok((await Promise.all(fine)).every(({ status }) => status === 200));
  assert.equal(single.status, 400);
  assert.equal(single.json.error.param, "input");
  assert.match(single.json.error.message, /^Invalid 'input': this text cannot be embedded/);
  assert.equal(list.json.error.param, "input[2]");
});

test("a wrong key is refused as the upstream refuses it, and its requests do not fail any others", async (t) => {
  const fault = ({ headers }: { headers: Record<string, string> }): object | undefined =>
    headers["authorization"] === "Bearer wrong"
      ? { status: 401, headers: { "www-authenticate": "Bearer" }, body: { error: { message: "Incorrect API key" } } }
      : undefined;
  const api = await embeddingApi(t, { fault });
  const proxy = await proxying(t, api.baseURL);
  const [wrong, right] = await Promise.all([proxy.embed("a", { key: "wrong" }), proxy.embed("a")]);
  assert.equal(wrong.status, 401);
  assert.equal(wrong.headers.get("www-authenticate"), "Bearer");
  assert.equal(wrong.json.error.message, "Incorrect API key");
  assert.equal(right.status, 200);
});

test("a 429 of one key pauses that key only, and its callers are answered after the pause", async (t) => {
  let refusals = 1;
  const fault = ({ headers }: { headers: Record<string, string> }): object | undefined =>
    headers["authorization"] === "Bearer busy" && refusals-- > 0
      ? { status: 429, headers: { "retry-after-ms": "3000" } }
      : undefined;
  const api = await embeddingApi(t, { fault });
  const proxy = await proxying(t, api.baseURL);
  let isBusyAnswered = false;
  const busy = proxy.embed("a", { key: "busy" }).then((reply) => ((isBusyAnswered = true), reply));
  await until(() => api.requests.length === 1);
  assert.equal((await proxy.embed("a")).status, 200);
  assert.equal(isBusyAnswered, false);
  assert.equal((await busy).status, 200);
});

test("an upstream that refuses everything is asked less and less often until its callers' deadline", async (t) => {
  const api = await embeddingApi(t, { fault: () => ({ status: 429, headers: { "retry-after-ms": "1" } }) });
  const proxy = await proxying(t, api.baseURL, { maxBatchSize: 1, maxWaitMs: 0, requestTimeoutMs: 1500 });
  const replies = await Promise.all(texts(40).map((text) => proxy.embed(text)));
  // One whose deadline comes while its request is under way gets a timeout.
  for (const { status } of replies) assert.ok(status === 429 || status === 504, `${status}`);
  assert.ok(api.requests.length <= 80, `${api.requests.length}`);
});

test("a caller whose deadline comes before the upstream's Retry-After gets the 429 with it at once", async (t) => {
  const api = await embeddingApi(t, { fault: () => ({ status: 429, headers: { "retry-after": "60" } }) });
  const proxy = await proxying(t, api.baseURL, { requestTimeoutMs: 20_000 });
  const { status, headers } = await proxy.embed("a");
  assert.equal(status, 429);
  assert.equal(headers.get("retry-after"), "60");
  assert.equal(api.requests.length, 1);
});

test("no caller is told to wait longer than two minutes, whatever the upstream asks for", async (t) => {
  for (const [given, told] of [
    [{ "retry-after": "1764292800" }, ["120", null]],
    [{ "retry-after": "Wed, 21 Oct 2099 07:28:00 GMT", "retry-after-ms": "1764292800000" }, ["120", "120000"]],
    [{ "retry-after": "1e300" }, [null, null]],
  ] as const) {
    const api = await embeddingApi(t, { fault: () => ({ status: 429, headers: given }) });
    const proxy = await proxying(t, api.baseURL, { requestTimeoutMs: 1000 });
    const { status, headers } = await proxy.embed("a");
    assert.equal(status, 429);
    assert.deepEqual([headers.get("retry-after"), headers.get("retry-after-ms")], told);
  }
  const api = createServer((_request, response) => response.writeHead(429, { "retry-after": "1764292800" }).end());
  const other = await proxying(t, await listen(t, api));
  assert.equal((await other.get("/v1/models")).headers.get("retry-after"), "120");
});

for (const [name, fault, status, code] of [
  ["500", { status: 500, body: { error: { message: "It broke." } } }, 500, undefined],
  ["HTML instead of JSON", { status: 200, body: "<html>" }, 502, "UPSTREAM_ERROR"],
  ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:1/" } }, 502, "UPSTREAM_ERROR"],
  ["too few vectors", "short", 502, "UPSTREAM_ERROR"],
  ["a connection that is reset", "reset", 502, "UPSTREAM_UNREACHABLE"],
] as const) {
  test(`the upstream answers with ${name}: every caller of the batch gets ${status}, no batch is repeated`, async (t) => {
    const api = await embeddingApi(t, { fault: () => fault, latencyMs: 1 });
    const proxy = await proxying(t, api.baseURL);
    const replies = await Promise.all(texts(40).map((text) => proxy.embed(text)));
    for (const reply of replies) {
      assert.equal(reply.status, status);
      assert.equal(reply.json.error.code ?? undefined, code);
      assert.ok(reply.json.error.message.length > 5);
    }
    const inputs = api.requests.flatMap((request) => request.inputs);
    // After a 500 or a reset one or two texts of a batch show that the others would fail as well: the first may be the one at fault.
    const batches = api.requests.filter((request) => request.inputs.length > 1).length;
    const repeated = inputs.length - new Set(inputs).size;
    assert.ok(repeated <= (status === 500 || fault === "reset" ? 2 * batches : 0), `${repeated} texts were sent twice`);
  });
}

for (const [name, answer, status] of [
  ["answers 500", { status: 500 }, 500],
  ["resets the connection", "reset", 502],
] as const)
  test(`three texts for which the upstream ${name} fail alone among 200`, async (t) => {
    const isBad = (text: string): boolean => text.startsWith("LONG");
    const fault = ({ inputs }: { inputs: string[] }) => (inputs.some(isBad) ? answer : undefined);
    const api = await embeddingApi(t, { fault, latencyMs: 1 });
    const proxy = await proxying(t, api.baseURL);
    const all = texts(200).map((text, i) => (i % 67 === 50 ? `LONG ${text}` : text));
    const replies = await Promise.all(all.map((text) => proxy.embed(text)));
    assert.deepEqual(
      replies.map((reply) => reply.status),
      all.map((text) => (isBad(text) ? status : 200)),
    );
  });

test("200 texts pass to an upstream that takes ten in a request and says so to nobody", async (t) => {
  const fault = ({ inputs }: { inputs: string[] }) => (inputs.length > 10 ? { status: 413, body: "" } : undefined);
  const api = await embeddingApi(t, { fault, latencyMs: 1 });
  const proxy = await proxying(t, api.baseURL);
  const replies = await Promise.all(texts(200).map((text) => proxy.embed(text)));
  assert.ok(replies.every(({ status }) => status === 200));
});

test("an upstream that is not there: 502 for everybody", async (t) => {
  const proxy = await proxying(t, await deserted(t));
  const { status, json } = await proxy.embed("a");
  assert.equal(status, 502);
  assert.match(json.error.message, /cannot be reached: ECONNREFUSED/);
  const other = await proxy.get("/v1/models");
  assert.equal(other.status, 502);
});

test("an upstream that never answers: 504 at the caller's deadline, and at RUN_TIMEOUT_MS the request is ended", async (t) => {
  const api = await embeddingApi(t, { fault: () => "hang" });
  const proxy = await proxying(t, api.baseURL, { runTimeoutMs: 400 });
  const [early, late] = await Promise.all([
    proxy.embed("a", { headers: { "x-request-timeout-ms": "100" } }),
    proxy.embed("b"),
  ]);
  assert.deepEqual([early.status, early.json.error.code], [504, "TIMEOUT"]);
  assert.deepEqual([late.status, late.json.error.code], [504, "RUN_TIMEOUT"]);
  await until(() => api.requests.every(({ gone }) => gone));
});

test("a text that the upstream never answers costs no other its vector; a tenant that keeps sending such texts is sent alone", async (t) => {
  const fault = ({ inputs }: { readonly inputs: string[] }): string | undefined =>
    inputs.some((text) => text.startsWith("hang")) ? "hang" : undefined;
  // A part may take ten times as long as a usual request: a second.
  const api = await embeddingApi(t, { fault, latencyMs: 100 });
  const settings = { runTimeoutMs: 1500, maxBatchSize: 4, maxWaitMs: 2000, tenantBy: "header" } as const;
  const proxy = await proxying(t, api.baseURL, settings);
  const embed = (tenant: string, input: unknown): Promise<Reply> =>
    proxy.embed(input, { headers: { "x-tenant": tenant } });
  const statuses = async (odd: string): Promise<number[]> => {
    const replies = await Promise.all([embed("odd", odd), embed("good", ["a", "b", "c"])]);
    return replies.map(({ status }) => status);
  };
  for (let fine = 1; fine <= 3; fine++) assert.deepEqual(await statuses("fine"), [200, 200]);
  assert.deepEqual(await statuses("hang"), [504, 200]);
  const before = api.requests.length;
  assert.deepEqual(await statuses("hang alone"), [504, 200]);
  assert.deepEqual(
    new Set(api.requests.slice(before).map(({ inputs }) => inputs.join())),
    new Set(["hang alone", "a,b,c"]),
  );
});

test("when every caller of a request has hung up, the request to the upstream is ended", async (t) => {
  const api = await embeddingApi(t, { fault: () => "hang" });
  const proxy = await proxying(t, api.baseURL);
  const controller = new AbortController();
  const calls = texts(3).map((text) => proxy.embed(text, { signal: controller.signal }).catch(() => undefined));
  await until(() => api.requests.flatMap(({ inputs }) => inputs).length === 3);
  controller.abort();
  await Promise.all(calls);
  await until(() => api.requests.every(({ gone }) => gone));
});

test("a queue that is full answers 429 with Retry-After at once", async (t) => {
  const api = await embeddingApi(t, { fault: () => "hang" });
  const settings = { maxBatchSize: 1, upstreamConcurrency: 1, queueMaxSize: 2, maxWaitMs: 0 };
  const proxy = await proxying(t, api.baseURL, settings);
  const held = ["a", "b", "c"].map((text) => proxy.embed(text).catch(() => undefined));
  await until(() => api.requests.length === 1);
  let refused: Reply | undefined;
  while (refused?.status !== 429) refused = await proxy.embed("d", { headers: { "x-request-timeout-ms": "20" } });
  assert.equal(refused.json.error.code, "QUEUE_FULL");
  assert.ok(Number(refused.headers.get("retry-after-ms")) > 0);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  await proxy.close({ graceMs: 0 });
  await Promise.all(held);
});

test("requests and tokens a minute hold requests back before they are sent", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL, { maxBatchSize: 1, upstreamRequestsPerMinute: 3 });
  const held = new AbortController();
  const statuses: number[] = [];
  const calls = texts(8).map(async (text) => {
    const { status } = await proxy.embed(text, { signal: held.signal });
    statuses.push(status);
  });
  // The bucket does not start full: nobody knows what others have left of it.
  await until(() => statuses.length === 1);
  // Another key has a budget of its own.
  assert.equal((await proxy.embed("a", { key: "sk-b" })).status, 200);
  assert.equal(api.requests.length, 2);
  held.abort();
  await Promise.allSettled(calls);
  assert.deepEqual(statuses, [200]);
});

test("replies tell the room that the key and model have left, and no more than is known of it", async (t) => {
  const api = await embeddingApi(t);
  const limited = await proxying(t, api.baseURL, { upstreamRequestsPerMinute: 600, upstreamTokensPerMinute: 60_000 });
  const { headers } = await limited.embed("a");
  const header = (name: string): string | null => headers.get(`x-ratelimit-${name}`);
  assert.deepEqual([header("limit-requests"), header("limit-tokens")], ["600", "60000"]);
  for (const kind of ["requests", "tokens"]) {
    const remaining = Number(header(`remaining-${kind}`));
    assert.ok(
      Number.isInteger(remaining) && remaining > 0 && remaining < Number(header(`limit-${kind}`)),
      `${remaining}`,
    );
    assert.match(header(`reset-${kind}`)!, /^(\d+m)?[\d.]+m?s$/);
  }
  const free = await proxying(t, api.baseURL);
  assert.equal((await free.embed("a")).headers.get("x-ratelimit-limit-requests"), null);
});

test("a limit that the upstream tells goes on to callers, and stands in the metrics", async (t) => {
  const fault = (_request: object, number: number): object | undefined => (number > 1 ? undefined : { status: 429, headers: {
    "retry-after-ms": "1",
    "x-ratelimit-limit-tokens": "300000",
    "x-ratelimit-remaining-tokens": "100000",
    "x-ratelimit-reset-tokens": "40s",
  } }); // prettier-ignore
  const api = await embeddingApi(t, { fault });
  const proxy = await proxying(t, api.baseURL);
  const { status, headers } = await proxy.embed("a");
  assert.equal(status, 200);
  assert.equal(headers.get("x-ratelimit-limit-tokens"), "300000");
  assert.equal((await proxy.embed("b", { key: "sk-b" })).status, 200);
  const { text } = await proxy.get("/metrics");
  assert.match(text, /^sheaf_rate_limit_used_total\{batcher="upstream",kind="runs"\} 3$/m, "of both keys");
  assert.match(text, /^sheaf_rate_limit_per_minute\{batcher="upstream",kind="weight"\} 300000$/m);
  assert.match(text, /^sheaf_rate_limit_refusals_total\{batcher="upstream"\} 1$/m);
});

test("tokens of a request stay within OpenAI's 300,000, as estimated", async (t) => {
  const api = await embeddingApi(t, { latencyMs: 20 });
  const proxy = await proxying(t, api.baseURL, { upstreamConcurrency: 1 });
  const long = Array.from({ length: 90 }, (_, i) => String(i).padEnd(20_000, "x"));
  const replies = await Promise.all(long.map((text) => proxy.embed(text)));
  assert.ok(replies.every(({ status }) => status === 200));
  assert.ok(api.requests.every(({ inputs }) => inputs.length <= 45));
});

test("what cannot share a request goes to the upstream by itself, and its answer comes back word for word", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  for (const input of ["", [], [""]]) {
    const { status, json } = await proxy.embed(input);
    assert.equal(status, 400, JSON.stringify(input));
    assert.equal(json.status, undefined, "no problem document of the proxy's");
    assert.ok(json.error.message.includes("input"));
  }
  assert.equal((await post(`${proxy.url}/v1/embeddings`, "{")).status, 400);
});

test("token ids and objects share requests as texts do", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  const [ids, lists] = await Promise.all([proxy.embed([1, 2, 3]), proxy.embed([[4, 5], [6]])]);
  assert.deepEqual(ids.json.data[0].embedding, vectorOf([1, 2, 3]));
  assert.deepEqual(
    lists.json.data.map(({ embedding }: any) => embedding),
    [vectorOf([4, 5]), vectorOf([6])],
  );
});

test("every other route goes through, with method, body, query and streams", async (t) => {
  const upstream = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "x-method": request.method ?? "" });
    response.write(`data: ${request.url}\n\n`);
    let length = 0;
    request.on("data", (chunk: Buffer) => (length += chunk.length));
    request.on("end", () => response.end(`data: ${length} ${request.headers.authorization}\n\n`));
  });
  const proxy = await proxying(t, `${await listen(t, upstream)}/v1`);
  const response = await fetch(`${proxy.url}/v1/chat/completions?x=1`, {
    method: "POST",
    headers: { authorization: "Bearer k", "content-type": "text/plain" },
    body: "x".repeat(100_000),
  });
  assert.equal(response.headers.get("x-method"), "POST");
  assert.equal(await response.text(), "data: /v1/chat/completions?x=1\n\ndata: 100000 Bearer k\n\n");
  const deleted = await fetch(`${proxy.url}/v1/files/1`, { method: "DELETE" });
  assert.equal(deleted.headers.get("x-method"), "DELETE");
});

test("a path that names another host goes to the upstream all the same", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.url);
  for (const path of ["//127.0.0.2:1/v1/models", "/\\\\127.0.0.2:1/v1/models", "/http://127.0.0.2:1/models"]) {
    const { status, text } = await raw(proxy.url, path);
    assert.equal(status, 200, `${path}: ${text}`);
  }
  assert.equal(api.others.length, 3);
});

test("no path leads out of the upstream's base path, however it is encoded, and no refusal blames a model", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  const climbing = ["/v1/%2e%2e/admin", "/v1/.%2E/admin", "/%2e%2e/admin", "/v1/..%2fadmin", "/v1/x/..%2f..%2fadmin", "/v1/..%5cadmin", "/v1/..\\admin", "/v1/a/..%2fb", "/v1/..a%zz"]; // prettier-ignore
  for (const path of climbing) {
    const { status, text } = await raw(proxy.url, path);
    assert.equal(status, 400, `${path}: ${text}`);
    assert.doesNotMatch(text, /model/i, path);
  }
  for (const path of ["/%2e%2e/embeddings", "/v1/%2e%2e/embeddings", "/..%2fembeddings"]) {
    const { status, text } = await raw(proxy.url, path, '{"model":"tiny","input":"a"}');
    assert.equal(status, 400, `${path}: ${text}`);
  }
  assert.deepEqual([api.others, api.requests], [[], []]);
  for (const path of ["/v1/a/%2e%2e/models", "/v1/models?path=/a/../b"]) {
    const { status, text } = await raw(proxy.url, path);
    assert.equal(status, 200, `${path}: ${text}`);
  }
  assert.deepEqual(api.others.map(({ url }) => url), ["/v1/models", "/v1/models?path=/a/../b"]); // prettier-ignore
});

test("pages of allowed origins may call it", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.url, { corsOrigins: ["https://example.org"] });
  const reply = await proxy.embed("a", { headers: { origin: "https://example.org" } });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("access-control-allow-origin"), "https://example.org");
});

test("a stream of another route is finished before the proxy closes, an open page does not hold it up", async (t) => {
  let end: () => void = () => undefined;
  const upstream = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    end = () => response.end("data: 2\n\n");
  });
  const proxy = await proxying(t, await listen(t, upstream));
  const page = await fetch(`${proxy.url}/dashboard/events`);
  const stream = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body: "{}" });
  let isClosed = false;
  const closing = proxy.close().then((isComplete) => ((isClosed = true), isComplete));
  const after = await fetch(`${proxy.url}/v1/models`);
  assert.equal(after.status, 503);
  assert.equal(isClosed, false);
  end();
  assert.equal(await stream.text(), "data: 1\n\ndata: 2\n\n");
  assert.equal(await closing, true);
  await page.text();
});

test("health, metrics and the page are the proxy's own", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  await Promise.all(texts(5).map((text, i) => proxy.embed(text, { key: `sk-${i % 2}` })));
  assert.deepEqual((await proxy.get("/readyz")).json, { status: "ok" });
  assert.equal((await proxy.get("/livez")).status, 200);
  const { text } = await proxy.get("/metrics");
  assert.match(text, /sheaf_items_total\{batcher="upstream",outcome="ok"\} 5\n/);
  assert.match(text, /sheaf_requests_total\{route="\/:a\/embeddings",status="200"\} 5\n/);
  assert.match((await proxy.get("/")).text, /<html/i);
  assert.equal(api.others.length, 0);
});

test("close finishes what is in, refuses what comes after with 503, and says whether all was finished", async (t) => {
  const api = await embeddingApi(t, { latencyMs: 200 });
  const proxy = await proxying(t, api.baseURL);
  const running = proxy.embed("a");
  await until(() => api.requests.length === 1);
  const closing = proxy.close();
  assert.equal((await running).status, 200);
  assert.equal(await closing, true);
  await assert.rejects(proxy.embed("b"));
});

test("what the grace period cuts off gets 503, and close says so", async (t) => {
  const api = await embeddingApi(t, { fault: () => "hang" });
  const proxy = await proxying(t, api.baseURL);
  const running = proxy.embed("a");
  await until(() => api.requests.length === 1);
  const isComplete = await proxy.close({ graceMs: 50 });
  assert.equal(isComplete, false);
  assert.equal((await running).status, 503);
});

test("what upstream and base have in common stands in the URL once", () => {
  const cases = [
    ["https://api.openai.com", "/v1/embeddings", "https://api.openai.com/v1/embeddings"],
    ["https://api.openai.com/v1", "/v1/embeddings", "https://api.openai.com/v1/embeddings"],
    ["https://host/openai/v1", "/v1/embeddings?a=/b", "https://host/openai/v1/embeddings?a=/b"],
    ["https://host/openai", "/v1/models", "https://host/openai/v1/models"],
    ["https://host/v1", "/embeddings", "https://host/v1/embeddings"],
  ];
  for (const [base, path, url] of cases) assert.equal(upstreamUrl(base!, path!), url);
});

test("headers that Connection names are of one hop", () => {
  const sent = upstreamHeaders(
    { connection: "close, X-Hop", "x-hop": "1", b: "2", authorization: "k", host: "h" },
    defaultSettings,
  );
  assert.deepEqual(Object.entries(sent), [
    ["authorization", "k"],
    ["b", "2"],
  ]);
});

test("a body is batchable where it has a model and inputs, whatever else it has", () => {
  const { calls, isSingle, model } = batchableRequest({ model: "m", input: "a", user: "u", dimensions: 3 })!;
  assert.deepEqual(calls, [{ input: "a", parameters: { model: "m", user: "u", dimensions: 3 } }]);
  assert.deepEqual([isSingle, model], [true, "m"]);
  for (const body of [
    null,
    [],
    "x",
    { input: "a" },
    { model: 3, input: "a" },
    { model: "m" },
    { model: "m", input: 3 },
  ])
    // prettier-ignore
    assert.equal(batchableRequest(body), undefined, JSON.stringify(body));
});

test("an upstream that is not a base URL is refused", async () => {
  for (const upstream of ["nowhere", "ftp://x", "https://x?key=1"])
    await assert.rejects(createProxy({ upstream }), /upstream must be an http or https URL/);
});
