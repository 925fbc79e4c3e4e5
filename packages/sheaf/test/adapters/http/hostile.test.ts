// Clients that mean harm to an endpoint, and endpoints that mean harm to a client.
import assert from "node:assert/strict";
import { test } from "node:test";
import { batchClient, batchEndpoint, HttpError, itemEndpoint } from "../../../dist/adapters/http/index.js";
import { asking, fronts, json, listening, resultsOf } from "./fronts.ts";

const echo = (items: unknown[]): unknown[] => items;
const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

for (const [front, mount] of Object.entries(fronts)) {
  test(`${front}: an item nested too deep, or with an invalid number, is a 422 of its own and is never run`, async (t) => {
    const seen: unknown[] = [];
    const ask = await mount(
      t,
      batchEndpoint((items: unknown[]) => (seen.push(...items), items)),
    );
    const deep = `{"items":[1,${nested(501)},${nested(200_000)},{"a":[1e999]},[1e308],${nested(500)}]}`;
    const results = await resultsOf(await ask({ headers: json, body: deep }));
    assert.deepEqual(results.map(({ status }) => status), [200, 422, 422, 422, 200, 200]); // prettier-ignore
    assert.match(results[1].error.message, /at most 500 deep/);
    assert.match(results[3].error.message, /too large/);
    assert.equal(seen.length, 3);
  });

  test(`${front}: an errorOf that throws, or names a success, is a plain 500 of that item`, async (t) => {
    for (const errorOf of [
      () => { throw new Error("errorOf is broken"); },
      () => undefined as never,
      () => ({ status: 200, code: "FINE", message: "all is well" }),
    ]) {
      const ask = await mount(t, itemEndpoint((n: number) => (n === 1 ? new Error("secret") : n), { errorOf }));
      const results = await resultsOf(await ask(asking([1, 2])));
      const failed = { status: 500, error: { code: "ITEM_FAILED", message: "The item failed." } };
      assert.deepEqual(results, [failed, { status: 200, value: 2 }]);
    }
  }); // prettier-ignore

  test(`${front}: an error without a prototype is answered, and a message of a megabyte is cut`, async (t) => {
    const errors = [Object.create(null), new Error("x".repeat(1e6))];
    const ask = await mount(
      t,
      itemEndpoint((n: number): Promise<number> => Promise.reject(errors[n])),
    );
    const results = await resultsOf(await ask(asking([0, 1])));
    assert.equal(results[0].error.message, "The item failed.");
    assert.equal(results[1].error.message.length, 1000);
  });
}

test("web: a body that never ends does not hold the endpoint once its client has gone", async () => {
  const controller = new AbortController();
  const body = new ReadableStream({ pull: () => new Promise(() => undefined) });
  const init = { method: "POST", headers: json, body, duplex: "half", signal: controller.signal } as RequestInit;
  const response = batchEndpoint(echo).fetch(new Request("http://here/batch", init));
  setImmediate(() => controller.abort());
  assert.equal((await response).status, 499);
});

test("web: a body that has been read already is an answer that says so, not a rejection", async () => {
  const request = new Request("http://here/batch", { method: "POST", ...asking([1]) });
  await request.text();
  const response = await batchEndpoint(echo).fetch(request);
  assert.equal(response.status, 500);
  assert.match(await response.text(), /before any body parser/);
});

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect (${status}) is not followed: no key goes to another address, and the error names it`, async (t) => {
    let followed = 0;
    const elsewhere = await listening(t, (_request, _body, response) => (followed++, response.end("{}")));
    const url = await listening(t, (_request, _body, response) =>
      response.writeHead(status, { location: elsewhere }).end(),
    );
    const call = batchClient(url, { headers: { "x-api-key": "secret" } });
    await assert.rejects(call(1), {
      name: "HttpError",
      status,
      message: new RegExp(`redirects to ${elsewhere}; give`),
    });
    assert.equal(followed, 0);
  });
}

const lies: Record<string, [string | Uint8Array, RegExp]> = {
  "a success with an error": [`{"results":[{"status":200,"error":{"message":"no"}}]}`, /status 200 must have no error/],
  "a status beyond all": [`{"results":[{"status":1000000000}]}`, /integer status from 200 to 599/],
  "a status of 0": [`{"results":[{"status":0}]}`, /integer status from 200 to 599/],
  "results under a prototype's name": [`{"__proto__":{"results":[{"status":200,"value":1}]}}`, /must be {"results"/],
  "nesting without end": ["[".repeat(100_000), /must be {"results"/],
  "bytes that are not UTF-8": [Uint8Array.of(0x7b, 0xff), /not UTF-8/],
};
for (const [name, [body, complaint]] of Object.entries(lies)) {
  test(`a reply with ${name} is a 502 BAD_REPLY`, async (t) => {
    const url = await listening(t, (_request, _body, response) => response.end(body));
    await assert.rejects(batchClient(url)(1), (error) => {
      assert.ok(error instanceof HttpError && error.status === 502 && error.code === "BAD_REPLY", String(error));
      assert.match(error.message, complaint);
      return true;
    });
  });
}

test("a reply that never ends is cut off at maxReplyBytes, or with runTimeoutMs where it trickles", async (t) => {
  const url = await listening(t, (_request, _body, response) => {
    response.write(`{"results":[`);
    const more = setInterval(() => response.write(`{"status":200,"value":1},`), 1);
    response.once("close", () => clearInterval(more));
  });
  await assert.rejects(batchClient(url, { maxReplyBytes: 1024 })(1), { code: "BAD_REPLY", message: /maxReplyBytes/ });
  await assert.rejects(batchClient(url, { runTimeoutMs: 50 })(1), { code: "RUN_TIMEOUT" });
});

test("a Retry-After of the next century is a pause of two minutes", async (t) => {
  const later = { "retry-after": "Wed, 21 Oct 2099 07:28:00 GMT" };
  const url = await listening(t, (_request, _body, response) => response.writeHead(503, later).end());
  await assert.rejects(batchClient(url)(1), { status: 503, retryAfterMs: 120_000 });
});
