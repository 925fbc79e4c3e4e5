// What the world does to a client of a real HTTP server: every caller is answered, and no item that ran is sent twice.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { batchClient, ConnectionError, HttpError, type BatchClientOptions } from "../../../dist/adapters/http/index.js";
import { greedy } from "../../../dist/index.js";
import { numbers } from "../../support/rig.ts";
import { listening } from "./fronts.ts";

type Respond = Parameters<typeof listening>[1];
const calls = 500;

/** 500 calls at once against a server that answers so; gives their outcomes and the requests it saw. */
async function storm(
  t: TestContext,
  respond: (...[request, body, response, count]: [...Parameters<Respond>, number]) => unknown,
  options: BatchClientOptions<number, number> = {},
): Promise<{ outcomes: PromiseSettledResult<number>[]; requests: number }> {
  let requests = 0;
  const items: number[] = [];
  const url = await listening(t, (request, body, response) => {
    requests++;
    const answered = respond(request, body, response, requests);
    if (response.statusCode !== 429) items.push(...(JSON.parse(body) as { items: number[] }).items);
    return answered;
  });
  const call = batchClient<number, number>(url, { policy: greedy(), ...options });
  const outcomes = await Promise.allSettled(numbers(calls).map((n) => call(n)));
  await call.close();
  assert.equal(new Set(items).size, items.length, "no item was sent twice that was not refused");
  return { outcomes, requests };
}

const echo: Respond = (_request, body, response) => {
  const { items } = JSON.parse(body) as { items: number[] };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ results: items.map((value) => ({ status: 200, value })) }));
};

/** What became of the calls: a count for each kind; a fulfilled one must be its own. */
function tally(outcomes: readonly PromiseSettledResult<number>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  outcomes.forEach((outcome, n) => {
    if (outcome.status === "fulfilled") assert.equal(outcome.value, n);
    const { reason } = outcome as PromiseRejectedResult;
    const kind = outcome.status === "fulfilled" ? "own" : reason instanceof HttpError ? reason.status : (reason.code ?? reason.cause?.code ?? reason.name); // prettier-ignore
    counts[kind] = (counts[kind] ?? 0) + 1;
  });
  return counts;
}

test("all goes well: 500 calls are 5 requests", async (t) => {
  const { outcomes, requests } = await storm(t, echo);
  assert.deepEqual([tally(outcomes), requests], [{ own: 500 }, 5]);
});

test("a storm of 429: one request at a time finds out, the rest waits for the pause, and every caller is answered", async (t) => {
  const { outcomes, requests } = await storm(
    t,
    (request, body, response, count) => {
      if (count > 2) echo(request, body, response);
      else
        response.writeHead(429, { "retry-after-ms": "20" }).end(JSON.stringify({ detail: "slow down", code: "BUSY" }));
    },
    { concurrency: 1 },
  );
  assert.deepEqual([tally(outcomes), requests], [{ own: 500 }, 7]);
});

test("429 forever: 50 batches and the 10 retries that no success has paid for, then 500 callers have the error", async (t) => {
  const { outcomes, requests } = await storm(
    t,
    (_request, _body, response) => response.writeHead(429, { "retry-after-ms": "1" }).end(),
    { maxBatchSize: 10 },
  );
  assert.deepEqual([tally(outcomes), requests], [{ 429: 500 }, 60]);
});

test("500s: every caller has the error of its batch, even with bisection, and nothing is repeated", async (t) => {
  const { outcomes, requests } = await storm(
    t,
    (request, body, response, count) => {
      if (count % 2 === 0) echo(request, body, response);
      else response.writeHead(500).end("oops");
    },
    { onBatchError: "bisect", concurrency: 1 },
  );
  assert.deepEqual([tally(outcomes), requests], [{ 500: 300, own: 200 }, 5]);
});

test("a server that never answers is given up after runTimeoutMs, and its slots are not handed out again", async (t) => {
  const { outcomes, requests } = await storm(
    t,
    (request, body, response, count) => (count > 1 ? echo(request, body, response) : undefined),
    { runTimeoutMs: 1000, concurrency: 1 },
  );
  assert.deepEqual([tally(outcomes), requests], [{ RUN_TIMEOUT: 100, own: 400 }, 5]);
});

for (const isBegun of [true, false])
  test(`a connection reset ${isBegun ? "in the middle of a" : "before any"} reply fails its batch only`, async (t) => {
    const { outcomes, requests } = await storm(t, (request, body, response, count) => {
      if (count !== 2) return void echo(request, body, response);
      if (isBegun) response.writeHead(200, { "content-length": "10000" }).write(`{"results":[{"status":200,"value":`);
      setImmediate(() => request.socket.destroy());
    });
    const { own, ...failed } = tally(outcomes);
    assert.deepEqual([own, Object.values(failed), requests], [400, [100], 5]);
  });

test("a reply with too few results fails its batch with RESULT_COUNT, and no caller gets a neighbour's", async (t) => {
  const { outcomes, requests } = await storm(t, (request, body, response, count) => {
    if (count !== 3) echo(request, body, response);
    else response.end(JSON.stringify({ results: [{ status: 200, value: 1 }] }));
  });
  assert.deepEqual([tally(outcomes), requests], [{ RESULT_COUNT: 100, own: 400 }, 5]);
});

/** An address of this machine where nothing listens. */
async function nobody(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}/batch`;
}

test("without a server every caller gets the error, once a batch", async () => {
  const call = batchClient<number, number>(await nobody(), { policy: greedy() });
  const outcomes = await Promise.allSettled(numbers(calls).map((n) => call(n)));
  assert.deepEqual(tally(outcomes), { ECONNREFUSED: 500 });
  assert.equal(call.stats().batches, 5);
});

test("a lost connection's error names its code and the address, and never the query or a password", async (t) => {
  const closing = await listening(t, (request) => request.socket.destroy());
  for (const [url, code] of [
    [`${await nobody()}?key=secret`, "ECONNREFUSED"],
    [`${closing}?key=secret`, "UND_ERR_SOCKET"],
  ] as const) {
    const error = await batchClient<number, number>(url)(1).then(
      () => assert.fail(url),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ConnectionError, String(error));
    assert.deepEqual([error.code, error.url], [code, url.replace("?key=secret", "")]);
    assert.ok(error.message.includes(error.url) && error.message.includes(code), error.message);
    assert.ok(error.cause instanceof TypeError && !error.message.includes("secret"), error.message);
  }
});

test("an error of the user's own fetch that is not the connection's comes as it was thrown", async () => {
  const own = new Error("no token today");
  const call = batchClient<number, number>("http://127.0.0.1:1/", { fetch: () => Promise.reject(own) });
  await assert.rejects(call(1), (error) => error === own);
});
