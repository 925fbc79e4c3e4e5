import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzzGrpc } from "../prove/lib/fuzz/grpc.mjs";

const seed = 7;

test(`120 hostile calls and connections over gRPC: each ends or is reset, a good call right after it, nothing left (seed ${seed})`, async () => {
  const { ends, before, after } = await fuzzGrpc({ count: 120, seed });
  for (const model of after.models) assert.deepEqual(model, { queued: 0, inFlight: 0 });
  assert.ok(after.heapBytes - before.heapBytes < 50_000_000, `${before.heapBytes} → ${after.heapBytes} bytes`);
  // The cases reach every layer: served, wrong values, too large, no such method, reset, not gRPC.
  for (const end of ["0", "3", "8", "12", "HTTP 415", "storm", "connection"]) assert.ok(end in ends, `no ${end}: ${Object.keys(ends)}`);
}); // prettier-ignore
