// The batch endpoint behind Hono on Node, asked by the client over real sockets.
import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, test } from "node:test";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { batchClient, itemEndpoint } from "sheaf/adapters/http";
import { untilTrue } from "./lib/until.mjs";

const open = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function hono(endpoint) {
  const app = new Hono();
  let requests = 0;
  app.use(async (_, next) => {
    requests++;
    await next();
  });
  app.post("/batch", (context) => endpoint.fetch(context.req.raw));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await once(server, "listening");
  open.push(() => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))));
  return { url: `http://127.0.0.1:${server.address().port}/batch`, requests: () => requests };
}

test("500 calls through Hono are 5 requests; failures are their callers' own", async () => {
  const endpoint = itemEndpoint((n) => {
    if (n === 13) throw Object.assign(new Error("unlucky"), { status: 409 });
    return 2 * n;
  });
  const { url, requests } = await hono(endpoint);
  const double = batchClient(url);
  const outcomes = await Promise.allSettled(Array.from({ length: 500 }, (_, n) => double(n)));
  for (const [n, { value, reason }] of outcomes.entries()) {
    if (n === 13) assert.deepEqual([reason.status, reason.message], [409, "unlucky"]);
    else assert.equal(value, 2 * n);
  }
  assert.equal(requests(), 5);
  await double.close();
});

test("Hono: a client that hangs up cancels what it asked for", async () => {
  let running = 0;
  let aborted = 0;
  const endpoint = itemEndpoint(
    (_, { signal }) => {
      running++;
      return new Promise((resolve) => signal.addEventListener("abort", () => (aborted++, resolve())));
    },
    { concurrency: 2 },
  );
  const { url } = await hono(endpoint);
  const leaving = new AbortController();
  const call = batchClient(url);
  const gone = [1, 2, 3].map((n) => call(n, { signal: leaving.signal }).catch(({ name }) => name));
  await untilTrue(() => running === 2);
  leaving.abort();
  assert.deepEqual(await Promise.all(gone), ["AbortError", "AbortError", "AbortError"]);
  await untilTrue(() => aborted === 2);
  assert.equal(running, 2, "the third was never run");
});

test("Hono: a body over the limit is refused with 413, and the server goes on", async () => {
  const { url } = await hono(itemEndpoint((text) => text.length, { maxBodyBytes: 10_000 }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ items: ["x".repeat(50_000)] }) });
  assert.equal(response.status, 413);
  assert.equal(await batchClient(url)("four"), 4);
});
