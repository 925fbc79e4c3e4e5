// Every promise of an endpoint, behind web requests and behind Fastify.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import Fastify from "fastify";
import { batchEndpoint, itemEndpoint } from "../../../dist/adapters/http/index.js";
import { greedy } from "../../../dist/index.js";
import { manualClock } from "../../../dist/testing/index.js";
import { asking, fronts, json, resultsOf } from "./fronts.ts";

const mediaType = (response: Response): string | undefined => response.headers.get("content-type")?.split(";")[0];
const double = async (n: number): Promise<number> => 2 * n;

/** Turns of the event loop until it holds, for 20 s at most: sockets need some. */
async function until(holds: () => boolean): Promise<void> {
  for (const deadlineAtMs = performance.now() + 20_000; !holds() && performance.now() < deadlineAtMs;) await turn();
  assert.ok(holds());
}

for (const [front, mount] of Object.entries(fronts)) {
  const promise = (name: string, hold: (t: TestContext) => Promise<void>): void => void test(`${front}: ${name}`, hold);

  promise("each item has its own result, in the order of the items", async (t) => {
    const endpoint = itemEndpoint(async (n: number) => {
      if (n === 2) throw Object.assign(new Error("two is taken"), { status: 409, code: "TAKEN" });
      if (n === 3) return new TypeError("three is odd");
      return { n };
    });
    const ask = await mount(t, endpoint);
    const response = await ask(asking([1, 2, 3, 4]));
    assert.equal(response.status, 200);
    assert.equal(mediaType(response), "application/json");
    assert.deepEqual(await resultsOf(response), [
      { status: 200, value: { n: 1 } },
      { status: 409, error: { code: "TAKEN", message: "two is taken" } },
      { status: 500, error: { code: "ITEM_FAILED", message: "three is odd" } },
      { status: 200, value: { n: 4 } },
    ]);
    assert.deepEqual(await resultsOf(await ask(asking([]))), []);
  });

  promise("items of two requests share a batch of the batch function", async (t) => {
    const batches: number[][] = [];
    const clock = manualClock();
    const endpoint = batchEndpoint(
      async (ns: number[]) => {
        batches.push([...ns]);
        return ns.map((n) => 2 * n);
      },
      { clock, policy: greedy() },
    );
    const ask = await mount(t, endpoint);
    const replies = [ask(asking([1, 2])), ask(asking([3]))];
    await until(() => endpoint.batcher.stats().queued === 3);
    await clock.settle();
    const values = await Promise.all(replies.map(async (reply) => resultsOf(await reply)));
    assert.deepEqual(values.map((results) => results.map(({ value }) => value)), [[2, 4], [6]]); // prettier-ignore
    assert.equal(batches.length, 1);
  });

  promise("five searches take as long as the slowest, and no more run at once than concurrency", async (t) => {
    const clock = manualClock();
    let running = 0;
    let most = 0;
    const search = (ms: number): Promise<number> => {
      most = Math.max(most, ++running);
      return new Promise((resolve) => clock.after(ms, () => (running--, resolve(clock.now()))));
    };
    const ask = await mount(t, itemEndpoint(search, { clock }));
    const five = ask(asking([30, 50, 10, 20, 40]));
    await until(() => clock.pending > 0);
    await clock.advanceAsync(50);
    assert.deepEqual((await resultsOf(await five)).map(({ value }) => value), [30, 50, 10, 20, 40]); // prettier-ignore
    assert.equal(most, 5);

    const bounded = itemEndpoint(search, { clock, concurrency: 2 });
    const askBounded = await mount(t, bounded);
    most = 0;
    const reply = askBounded(asking([10, 10, 10, 10, 10]));
    await until(() => clock.pending > 0);
    await clock.advanceAsync(1000);
    assert.equal((await resultsOf(await reply)).length, 5);
    assert.equal(most, 2);
  });

  promise("a deadline belongs to its item", async (t) => {
    const clock = manualClock();
    const ask = await mount(t, itemEndpoint(() => new Promise((resolve) => clock.after(100, () => resolve("done"))), { clock })); // prettier-ignore
    const reply = ask(asking(["a", "b", "c"], { timeouts_ms: [50, null, 200] }));
    await until(() => clock.pending > 0);
    await clock.advanceAsync(100);
    const results = await resultsOf(await reply);
    assert.deepEqual(results.map(({ status }) => status), [504, 200, 200]); // prettier-ignore
    assert.equal(results[0].error.code, "TIMEOUT");
  });

  promise("no item gets longer than the endpoint's own timeoutMs", async (t) => {
    const clock = manualClock();
    const ask = await mount(
      t,
      itemEndpoint(() => new Promise(() => {}), { clock, timeoutMs: 70 }),
    );
    const reply = ask(asking(["a", "b"], { timeouts_ms: [1e9, null] }));
    await until(() => clock.pending > 0);
    await clock.advanceAsync(70);
    assert.deepEqual((await resultsOf(await reply)).map(({ status }) => status), [504, 504]); // prettier-ignore
  });

  promise("a priority belongs to its item", async (t) => {
    const order: string[] = [];
    const endpoint = itemEndpoint(async (name: string) => void order.push(name), { concurrency: 1 });
    const ask = await mount(t, endpoint);
    await ask(asking(["bulk", "plain", "urgent"], { priorities: ["bulk", null, "immediate"] }));
    assert.deepEqual(order, ["urgent", "plain", "bulk"]);
  });

  promise("what does not fit the queue gets 429 and a moment to come back, the rest its results", async (t) => {
    const ends: (() => void)[] = [];
    const endpoint = itemEndpoint((n: number) => new Promise<number>((resolve) => ends.push(() => resolve(n))), {
      concurrency: 1,
      maxQueueSize: 2,
    });
    const ask = await mount(t, endpoint);
    const partly = ask(asking([1, 2, 3]));
    await until(() => ends.length === 1);
    const full = [ask(asking([4])), ask(asking([5, 6]))];
    await until(() => endpoint.batcher.stats().items.rejected >= 1);
    ends[0]!();
    await until(() => ends.length === 2);
    ends[1]!();
    const results = await resultsOf(await partly);
    assert.deepEqual(results.map(({ status }) => status), [200, 200, 429]); // prettier-ignore
    assert.equal(results[2].error.code, "QUEUE_FULL");
    assert.ok(results[2].error.retry_after_ms >= 1);
    void Promise.all(full).catch(() => undefined);
    const answering = setInterval(() => ends.at(-1)!(), 1);
    await Promise.all(full);
    clearInterval(answering);
  });

  promise("a request of which nothing fits is a 429 as a whole, with Retry-After", async (t) => {
    const ends: (() => void)[] = [];
    const endpoint = itemEndpoint((n: number) => new Promise<number>((resolve) => ends.push(() => resolve(n))), {
      concurrency: 1,
      maxQueueSize: 1,
    });
    const ask = await mount(t, endpoint);
    const running = ask(asking([1]));
    await until(() => ends.length === 1);
    const waiting = ask(asking([2]));
    await until(() => endpoint.batcher.stats().queued === 1);
    const refused = await ask(asking([3, 4]));
    assert.equal(refused.status, 429);
    assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    assert.ok(Number(refused.headers.get("retry-after-ms")) >= 1);
    const problem = (await refused.json()) as Record<string, unknown>;
    assert.deepEqual([problem["status"], problem["code"]], [429, "QUEUE_FULL"]);
    ends[0]!();
    await running;
    await until(() => ends.length === 2);
    ends[1]!();
    assert.equal((await waiting).status, 200);
  });

  promise("parse turns an item away alone, with 422 and its reason", async (t) => {
    const parse = (item: unknown): number => {
      if (typeof item !== "number") throw new TypeError(`expected a number, got ${typeof item}`);
      return item;
    };
    const ask = await mount(t, itemEndpoint(double, { parse }));
    assert.deepEqual(await resultsOf(await ask(asking([1, "2", null]))), [
      { status: 200, value: 2 },
      { status: 422, error: { code: "INVALID_INPUT", message: "expected a number, got string" } },
      { status: 422, error: { code: "INVALID_INPUT", message: "expected a number, got object" } },
    ]);
  });

  promise("errorOf decides what of an error leaves the house", async (t) => {
    const ask = await mount(
      t,
      itemEndpoint<any, any>(() => Promise.reject(new Error("password is hunter2")), {
        errorOf: () => ({ status: 500, code: "INTERNAL", message: "The search failed." }),
      }),
    );
    assert.deepEqual(await resultsOf(await ask(asking([1]))), [
      { status: 500, error: { code: "INTERNAL", message: "The search failed." } },
    ]);
  });

  promise("a value that is not JSON fails its item only; undefined becomes null", async (t) => {
    const values: Record<string, unknown> = { big: 1n, none: undefined, text: "ok" };
    const ask = await mount(
      t,
      itemEndpoint(async (name: string) => values[name]),
    );
    const results = await resultsOf(await ask(asking(["big", "none", "text"])));
    assert.deepEqual(results.slice(1), [{ status: 200, value: null }, { status: 200, value: "ok" }]); // prettier-ignore
    assert.equal(results[0].status, 500);
    assert.match(results[0].error.message, /BigInt/);
  });

  const wrong: [string, Parameters<Awaited<ReturnType<typeof mount>>>[0], number, RegExp][] = [
    ["no content type", { body: new TextEncoder().encode("{}") }, 415, /content-type: application\/json, got none/],
    ["a form", { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "items=1" }, 415, /got "appl/],
    ["nothing", { headers: json, body: "" }, 400, /not JSON/],
    ["half of a JSON", { headers: json, body: `{"items": [1,` }, 400, /not JSON/],
    ["a literal NaN", { headers: json, body: `{"items": [NaN]}` }, 400, /not JSON/],
    ["bytes that are not UTF-8", { headers: json, body: new Uint8Array([0x7b, 0xff, 0xfe]) }, 400, /UTF-8/],
    ["an array", { headers: json, body: "[1, 2]" }, 422, /must be \{"items": \[ … \]\}, got an array of 2/],
    ["null", { headers: json, body: "null" }, 422, /got null/],
    ["no items", { headers: json, body: "{}" }, 422, /items must be an array, got undefined/],
    ["items that are a text", asking("abc"), 422, /items must be an array, got "abc"/],
    ["too many items", asking(Array(6).fill(0)), 422, /at most 5 \(maxItems\), got 6/],
    ["an unknown field", asking([1], { item: 1 }), 422, /unknown field "item"/],
    ["too few deadlines", asking([1, 2], { timeouts_ms: [1] }), 422, /as long as items \(2\), got 1/],
    ["a negative deadline", asking([1], { timeouts_ms: [-1] }), 422, /timeouts_ms\[0\] must be a number > 0/],
    ["an infinite deadline", { headers: json, body: `{"items":[1],"timeouts_ms":[1e999]}` }, 422, /timeouts_ms\[0\]/],
    ["an unknown priority", asking([1, 2], { priorities: [null, "now"] }), 422, /priorities\[1\] must be "immediate"/],
    ["a body over the limit", asking(["x".repeat(2000)]), 413, /at most 1000 bytes/],
    ["nested arrays without end", { headers: json, body: "[".repeat(900) }, 400, /not JSON/],
  ];
  for (const [name, init, status, detail] of wrong)
    promise(`${name} is refused with ${status} before the queue, with what to do`, async (t) => {
      let runs = 0;
      const endpoint = itemEndpoint(async () => runs++, { maxItems: 5, maxBodyBytes: 1000 });
      const ask = await mount(t, endpoint);
      const response = await ask(init);
      const problem = (await response.json()) as Record<string, unknown>;
      assert.equal(response.status, status, JSON.stringify(problem));
      assert.equal(mediaType(response), "application/problem+json");
      assert.match(String(problem["detail"]), detail);
      assert.equal(problem["status"], status);
      assert.equal(runs, 0);
      assert.equal((await ask(asking([1]))).status, 200, "a good request right after");
    });

  promise("a body that deceives __proto__ is an item like any other", async (t) => {
    const ask = await mount(
      t,
      itemEndpoint(async (item: object) => Object.keys(item)),
    );
    const body = `{"items":[{"__proto__":{"admin":true},"constructor":1}]}`;
    assert.deepEqual((await resultsOf(await ask({ headers: json, body })))[0].value, ["__proto__", "constructor"]);
    assert.equal((Object.prototype as Record<string, unknown>)["admin"], undefined);
  });

  promise("when the client goes, what waits is not run and what runs is aborted", async (t) => {
    const started: number[] = [];
    const aborted: number[] = [];
    const endpoint = itemEndpoint(
      (n: number, { signal }) => {
        started.push(n);
        return new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => (aborted.push(n), resolve()), { once: true });
        });
      },
      { concurrency: 2 },
    );
    const ask = await mount(t, endpoint);
    const leaving = new AbortController();
    const reply = ask({ ...asking([1, 2, 3, 4]), signal: leaving.signal }).catch(() => undefined);
    await until(() => started.length === 2);
    leaving.abort();
    await until(() => aborted.length === 2);
    await reply;
    await endpoint.batcher.drain();
    assert.deepEqual(started, [1, 2]);
    assert.equal(endpoint.batcher.stats().items.aborted, 4);
  });

  promise("a closed endpoint answers 503", async (t) => {
    const endpoint = itemEndpoint(double);
    const ask = await mount(t, endpoint);
    await endpoint.close();
    const response = await ask(asking([1]));
    assert.equal(response.status, 503);
    assert.ok(response.headers.get("retry-after"));
  });
}

test("web: whatever the body, the reply is a reply, as long as the items, and the server goes on", async () => {
  const endpoint = itemEndpoint(async (item: unknown) => item, { maxItems: 20, maxBodyBytes: 5000 });
  const list = (each: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.oneof(fc.array(each, { maxLength: 25 }), fc.jsonValue()); // prettier-ignore
  const bodies = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record(
        {
          items: list(fc.jsonValue()),
          timeouts_ms: list(fc.oneof(fc.double({ min: 1000 }), fc.constant(null), fc.jsonValue())),
          priorities: list(fc.constantFrom("bulk", "immediate", "interactive", null, "now", 1)),
        },
        { requiredKeys: ["items"] },
      )
      .map((body) => JSON.stringify(body)),
  );
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const request = new Request("http://here/batch", { method: "POST", headers: json, body });
      const response = await endpoint.fetch(request);
      const reply = (await response.json()) as { results: { status: number; value: unknown }[]; detail: string };
      if (response.status !== 200) {
        assert.ok([400, 413, 422].includes(response.status), `${response.status} for ${body}`);
        assert.ok(reply.detail.length > 10);
        return;
      }
      const { items, timeouts_ms: timeouts } = JSON.parse(body) as { items: unknown[]; timeouts_ms?: unknown[] };
      assert.equal(reply.results.length, items.length);
      for (const [i, { status, value }] of reply.results.entries()) {
        // A drawn timeout may be shorter than any run.
        const timeoutMs = timeouts?.[i];
        if (status === 504) assert.ok(typeof timeoutMs === "number" && timeoutMs < 1000, body);
        else assert.deepEqual(value, items[i]);
      }
    }),
    { seed: 20_261_126, numRuns: 500, examples: [['{"items":[{},"",[]],"timeouts_ms":[null,5e-324,null]}']] },
  );
  const { queued, inFlight } = endpoint.batcher.stats();
  assert.deepEqual([queued, inFlight], [0, 0]);
});

test("web: another method is 405, and Allow names POST", async () => {
  const { fetch } = itemEndpoint(double);
  const response = await fetch(new Request("http://here/batch"));
  assert.deepEqual([response.status, response.headers.get("allow")], [405, "POST"]);
});

test("fastify: a body without a length is cut off at the limit, and its client gets the reason", async (t) => {
  const app = Fastify();
  await app.register(itemEndpoint(double, { maxBodyBytes: 1000 }).fastify, { url: "/batch" });
  t.after(() => app.close());
  const { port } = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
  const socket = connect(Number(port), "127.0.0.1");
  socket.write(
    "POST /batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
  );
  socket.write(`800\r\n${"x".repeat(0x800)}\r\n`);
  const [reply] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  assert.match(reply.toString(), /^HTTP\/1\.1 413 /);
});

test("fastify: other routes of the app keep their own body parsers", async (t) => {
  const app = Fastify();
  await app.register(itemEndpoint(double).fastify, { url: "/batch" });
  app.post("/echo", (request, reply) => reply.send(request.body));
  t.after(() => app.close());
  const reply = await app.inject({ method: "POST", url: "/echo", payload: { a: 1 } });
  assert.deepEqual(reply.json(), { a: 1 });
});

test("fastify: app.close() finishes what is in, then closes the endpoint", async () => {
  const app = Fastify();
  const endpoint = itemEndpoint(double);
  await app.register(endpoint.fastify, { url: "/batch" });
  await app.ready();
  await app.close();
  await assert.rejects(endpoint.batcher(1), { code: "CLOSED" });
});

test("a wrong limit is a RangeError that says what it got", () => {
  assert.throws(() => itemEndpoint(double, { maxItems: 0 }), /RangeError: maxItems must be an integer >= 1, got 0/);
  assert.throws(() => itemEndpoint(double, { maxBodyBytes: "1" as any }), /maxBodyBytes must be an integer >= 1/);
  assert.throws(() => itemEndpoint("double" as any), /itemEndpoint needs a function/);
  assert.throws(
    () => batchEndpoint(double as any, { maxBatch: 1 } as any),
    /unknown option maxBatch; did you mean maxBatchSize/,
  );
});
