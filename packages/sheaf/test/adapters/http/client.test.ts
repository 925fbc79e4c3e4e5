import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batchClient,
  batchEndpoint,
  HttpError,
  itemEndpoint,
  type Endpoint,
} from "../../../dist/adapters/http/index.js";
import { greedy } from "../../../dist/index.js";
import { manualClock } from "../../../dist/testing/index.js";
import { endsOf, numbers, watch } from "../../support/rig.ts";

const url = "http://service.test/batch";

interface Sent {
  readonly body: any;
  readonly bytes: number;
  readonly headers: Headers;
}

/** A fetch that hands requests to an endpoint in this process and notes them. */
function wire(endpoint: Endpoint<any, any>): { fetch: typeof fetch; sent: Sent[] } {
  const sent: Sent[] = [];
  const send = async (to: any, init: any): Promise<Response> => {
    const request = new Request(to, init);
    sent.push({ body: JSON.parse(init.body), bytes: Buffer.byteLength(init.body), headers: request.headers });
    return endpoint.fetch(request);
  };
  return { fetch: send as typeof fetch, sent };
}

/** A fetch that answers by hand. */
function scripted(...replies: (() => Response | Promise<Response>)[]): { fetch: typeof fetch; requests: any[] } {
  const requests: any[] = [];
  const send = async (_to: any, init: any): Promise<Response> => {
    requests.push(JSON.parse(init.body));
    return (replies.length > 1 ? replies.shift()! : replies[0]!)();
  };
  return { fetch: send as typeof fetch, requests };
}

const ok =
  (...values: unknown[]): (() => Response) =>
  () =>
    Response.json({ results: values.map((value) => ({ status: 200, value })) });

test("many, settle and map go the same way", async () => {
  const { fetch } = wire(itemEndpoint(async (n: number) => (n === 3 ? new Error("three") : 2 * n)));
  const double = batchClient<number, number>(url, { fetch });
  assert.deepEqual(await double.many([1, 2]), [2, 4]);
  assert.deepEqual((await double.settle([1, 3])).map(({ status }) => status), ["fulfilled", "rejected"]); // prettier-ignore
  const seen: number[] = [];
  for await (const value of double.map([1, 2, 4])) seen.push(value);
  assert.deepEqual(seen, [2, 4, 8]);
  await double.close();
  await assert.rejects(double(1), { code: "CLOSED" });
});

test("an item's error is an HttpError with status, code and message, for its caller only", async () => {
  const failure = Object.assign(new Error("no such user"), { status: 404, code: "NO_USER" });
  const { fetch } = wire(itemEndpoint(async (id: number) => (id === 2 ? failure : id)));
  const load = batchClient<number, number>(url, { fetch });
  const [one, reason] = endsOf(await load.settle([1, 2]));
  assert.equal(one, 1);
  assert.ok(reason instanceof HttpError);
  assert.deepEqual([reason.status, reason.code, reason.message], [404, "NO_USER", "no such user"]);
});

test("deadline and priority of each call travel with its item; without them nothing is sent", async () => {
  const clock = manualClock();
  const { fetch, requests } = scripted(ok(1, 2, 3, 4));
  const call = batchClient<string, number>(url, { fetch, clock, policy: greedy() });
  void watch(call("plain"));
  void watch(call("short", { timeoutMs: 250.4 }));
  void watch(call("bulk", { priority: "bulk" }));
  void watch(call("now", { priority: "interactive", timeoutMs: 1000 }));
  await clock.settle();
  assert.deepEqual(requests, [
    { items: ["plain", "short", "now", "bulk"], timeouts_ms: [null, 251, 1000, null], priorities: [null, null, null, "bulk"] }, // prettier-ignore
  ]);
  void watch(call("plain"));
  await clock.settle();
  assert.deepEqual(requests[1], { items: ["plain"] });
});

test("what a call has waited already is taken off its deadline", async () => {
  const clock = manualClock();
  const { fetch, requests } = scripted(
    () => new Promise<Response>((resolve) => clock.after(200, () => resolve(ok("one")()))),
    ok("two"),
  );
  const call = batchClient<string, string>(url, { fetch, clock, policy: greedy(), concurrency: 1, timeoutMs: 500 });
  const first = watch(call("first"));
  await clock.settle();
  const second = watch(call("second"));
  await clock.advanceAsync(200);
  await clock.settle();
  assert.deepEqual([first.value, second.value], ["one", "two"]);
  assert.deepEqual(requests.map((request) => request.timeouts_ms), [[500], [300]]); // prettier-ignore
});

test("callers who share one item by dedupeKey do not share a deadline on the wire", async () => {
  const clock = manualClock();
  const { fetch, requests } = scripted(ok(1));
  const call = batchClient<string, number>(url, { fetch, clock, dedupeKey: (item) => item });
  const shared = [watch(call("a", { timeoutMs: 5 })), watch(call("a", { timeoutMs: 5000 }))];
  await clock.settle();
  assert.deepEqual(requests, [{ items: ["a"] }]);
  assert.deepEqual(shared.map(({ value }) => value), [1, 1]); // prettier-ignore
});

test("keys see the caller's item: groups never share a request", async () => {
  const { fetch, sent } = wire(itemEndpoint(async ({ n }: { n: number }) => n));
  const call = batchClient<{ tenant: string; n: number }, number>(url, { fetch, groupKey: ({ tenant }) => tenant });
  await Promise.all(numbers(20).map((n) => call({ tenant: n % 2 === 0 ? "a" : "b", n })));
  for (const { body } of sent) assert.equal(new Set(body.items.map(({ tenant }: any) => tenant)).size, 1);
});

test("no request is larger than maxBodyBytes, whatever its characters, and every item arrives", async () => {
  const { fetch, sent } = wire(batchEndpoint(async (texts: string[]) => texts.map((text) => text.length)));
  const call = batchClient<string, number>(url, { fetch, maxBodyBytes: 4096, timeoutMs: 60_000 });
  const texts = numbers(60).map((n) => ["a", "é", "€", "😀", '"'][n % 5]!.repeat(1 + ((n * 37) % 300)));
  assert.deepEqual(
    await Promise.all(texts.map((text) => call(text, { priority: "immediate" }))),
    texts.map(({ length }) => length), // prettier-ignore
  );
  for (const { bytes } of sent) assert.ok(bytes <= 4096, `${bytes} bytes`);
  assert.ok(sent.length > 3);
  await assert.rejects(call("x".repeat(5000)), { code: "ITEM_TOO_LARGE" });
});

test("an item that is not JSON is refused, with what it was; the others go", async () => {
  const { fetch } = wire(itemEndpoint(async (item: unknown) => item));
  const call = batchClient<any, any>(url, { fetch });
  const cyclic: any = {};
  cyclic.self = cyclic;
  const items = [undefined, 1n, "fine", cyclic, () => 1, "good"];
  for (const outcomes of [Promise.allSettled(items.map((item) => call(item))), call.settle(items)]) {
    const ends = endsOf(await outcomes);
    assert.deepEqual(ends.map((end) => end instanceof Error || end), [true, true, "fine", true, true, "good"]); // prettier-ignore
    assert.match(ends[0].message, /an item must be JSON, got undefined/);
  }
});

test("headers go with every request; a function is asked each time", async () => {
  const { fetch, sent } = wire(itemEndpoint(async (n: number) => n));
  let asked = 0;
  const call = batchClient<number, number>(url, {
    fetch,
    headers: async () => ({ authorization: `Bearer ${++asked}` }),
  });
  await call(1);
  await call(2);
  assert.deepEqual(sent.map(({ headers }) => headers.get("authorization")), ["Bearer 1", "Bearer 2"]); // prettier-ignore
  assert.equal(sent[0]?.headers.get("content-type"), "application/json");
});

test("parse checks what comes back; what it throws rejects that caller", async () => {
  const { fetch } = wire(itemEndpoint(async (n: number) => n));
  const parse = (value: unknown): number => {
    if (typeof value !== "number" || value > 1) throw new RangeError(`not a small number: ${String(value)}`);
    return value;
  };
  const call = batchClient<number, number>(url, { fetch, parse });
  const [one, two] = endsOf(await call.settle([1, 2]));
  assert.equal(one, 1);
  assert.match(two.message, /not a small number: 2/);
});

test("Retry-After of a refused request pauses the client, not only its callers: nothing is sent before", async () => {
  const clock = manualClock();
  const busy = (): Response =>
    new Response(JSON.stringify({ detail: "The queue is full", code: "QUEUE_FULL" }), {
      status: 429,
      headers: { "retry-after": "1", "retry-after-ms": "800" },
    });
  const { fetch, requests } = scripted(busy, ok("fine"));
  const options = { fetch, clock, policy: greedy(), maxBatchSize: 1, concurrency: 1, maxRetries: 0 };
  const call = batchClient<number, string>(url, options);
  const first = watch(call(1));
  const second = watch(call(2));
  await clock.advanceAsync(799);
  const reason = first.reason as HttpError;
  assert.deepEqual([reason.status, reason.code, reason.message, reason.retryAfterMs], [429, "QUEUE_FULL", "The queue is full", 800]); // prettier-ignore
  assert.equal(requests.length, 1);
  await clock.advanceAsync(2);
  assert.equal(second.value, "fine");
});

test("an item's own retry_after_ms is that caller's: its batch-mates have their results, and the next request goes", async () => {
  const clock = manualClock();
  const partly = (): Response =>
    Response.json({
      results: [
        { status: 200, value: "fine" },
        { status: 429, error: { code: "QUEUE_FULL", message: "full", retry_after_ms: 300 } },
      ],
    });
  const { fetch, requests } = scripted(partly, ok("later"));
  const call = batchClient<number, string>(url, { fetch, clock, policy: greedy(), maxBatchSize: 2 });
  const [one, two] = [watch(call(1)), watch(call(2))];
  await clock.settle();
  assert.equal(one.value, "fine");
  assert.equal((two.reason as HttpError).status, 429);
  assert.equal((two.reason as HttpError).retryAfterMs, 300);
  const three = watch(call(3));
  await clock.settle();
  assert.equal(requests.length, 2);
  assert.equal(three.value, "later");
});

test("when every caller has gone, the request is aborted", async () => {
  let aborted = 0;
  const send = (_: any, { signal }: any): Promise<Response> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => (aborted++, reject(signal.reason)));
    });
  const clock = manualClock();
  const call = batchClient<number, number>(url, { fetch: send as typeof fetch, clock });
  const controllers = [new AbortController(), new AbortController()];
  const calls = controllers.map(({ signal }, n) => watch(call(n, { signal })));
  await clock.settle();
  controllers[0]!.abort(new Error("gone"));
  await clock.settle();
  assert.deepEqual([calls[0]!.status, calls[1]!.status, aborted], ["rejected", "pending", 0]);
  controllers[1]!.abort(new Error("gone too"));
  await clock.settle();
  assert.equal(aborted, 1);
});

const broken: [string, () => Response, number, string, RegExp][] = [
  ["text", () => new Response("<html>"), 502, "BAD_REPLY", /must be \{"results": \[ … \]\}, got "<html>"/],
  ["no results", () => Response.json({ result: [] }), 502, "BAD_REPLY", /got "\{.*result/],
  [
    "results that are not results",
    () => Response.json({ results: [7] }),
    502,
    "BAD_REPLY",
    /integer status from 200 to 599, got 7/,
  ],
  ["a bare 500", () => new Response("oops", { status: 500 }), 500, "HTTP_500", /answered 500/],
  ["a bare item 500", () => Response.json({ results: [{ status: 500 }] }), 500, "HTTP_500", /failed with 500/],
  ["a reply over the limit", () => new Response("x".repeat(5000)), 502, "BAD_REPLY", /larger than 2000 bytes/],
  ["a wrong key", () => new Response("", { status: 401 }), 401, "HTTP_401", /answered 401/],
];
for (const [name, reply, status, code, message] of broken)
  test(`a reply with ${name} rejects with ${status} ${code}`, async () => {
    const { fetch } = scripted(reply);
    const call = batchClient<number, number>(url, { fetch, maxReplyBytes: 2000 });
    await assert.rejects(call(1), (error) => {
      assert.ok(error instanceof HttpError);
      assert.deepEqual([error.status, error.code], [status, code]);
      assert.match(error.message, message);
      return true;
    });
  });

test("a wrong option is refused at construction, with what it got", () => {
  assert.throws(() => batchClient("/batch"), /Invalid URL/);
  assert.throws(() => batchClient(url, { maxBodyBytes: 10 }), /maxBodyBytes must be a number of bytes >= 1024, got 10/);
  assert.throws(() => batchClient(url, { maxBatchSize: 0 }), /maxBatchSize must be an integer >= 1/);
});
