import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzzGrpc } from "../scripts/prove/lib/fuzz/grpc.mjs";
import { fuzz } from "../scripts/prove/lib/fuzz/http.mjs";
import { fuzzProxy } from "../scripts/prove/lib/fuzz/proxy.mjs";

const seed = 7;

/** That the cases reach every layer: their ends, of all kinds together, have one that begins with each of these. */
function assertSeen(ends, expected) {
  const seen = Object.values(ends).flatMap((ofKind) => Object.keys(ofKind));
  for (const end of expected) assert.ok(seen.some((one) => one.startsWith(end)), `no ${end}: ${JSON.stringify(ends)}`);
} // prettier-ignore

test(`2,000 hostile requests: no 5xx, no crash, nothing left, a good request right after each (seed ${seed})`, async () => {
  const { ends, after } = await fuzz({ count: 2000, seed, warmUp: 0 });
  for (const model of after.models) assert.deepEqual(model, { queued: 0, inFlight: 0 });
  // Served, not JSON, no such path, wrong method, too large, wrong type, wrong host, wrong value, headers.
  assertSeen(ends, ["200", "400", "404", "405", "413", "415", "421", "422", "431"]);
  assertSeen({ kept: ends["item kept"], refused: ends["item refused"] }, ["200", "422"]);
});

test(`120 hostile calls and connections over gRPC: each ends or is reset, a good call right after it, nothing left (seed ${seed})`, async () => {
  const { ends, before, after } = await fuzzGrpc({ count: 120, seed });
  for (const model of after.models) assert.deepEqual(model, { queued: 0, inFlight: 0 });
  assert.ok(after.heapBytes - before.heapBytes < 50_000_000, `${before.heapBytes} → ${after.heapBytes} bytes`);
  // Served, wrong values, wrong host, too large, no such method, not gRPC.
  assertSeen(ends, ["0", "3", "7", "8", "12", "HTTP 415", "storm", "connection"]);
  assertSeen({ json: ends["hostile JSON"], shape: ends["hostile shape"] }, ["0", "3"]);
  assert.ok(Object.keys(ends["rapid reset"]).length > 0);
}); // prettier-ignore

test(`300 hostile requests to a proxy: no 5xx, none outside of the base path or with another key (seed ${seed})`, async () => {
  const { ends, passed } = await fuzzProxy({ count: 300, seed });
  assert.ok(passed > 0);
  assertSeen(ends, ["200", "400", "421", "422"]);
  assertSeen({ kept: ends["parameter kept"], refused: ends["input refused"] }, ["200", "422"]);
});
