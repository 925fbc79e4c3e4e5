import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "../prove/lib/fuzz/http.mjs";

const seed = 7;

test(`2,000 random and broken requests: no 5xx, no crash, nothing left, a good request right after each (seed ${seed})`, async () => {
  const { statuses, after } = await fuzz({ count: 2000, seed, warmUp: 0 });
  for (const model of after.models) assert.deepEqual(model, { queued: 0, inFlight: 0 });
  const seen = new Set(Object.values(statuses).flatMap((byStatus) => Object.keys(byStatus)));
  // The cases reach every layer: served, not JSON, no such path, wrong method, too large, wrong type, wrong value, headers.
  for (const status of ["200", "400", "404", "405", "413", "415", "422", "431"])
    assert.ok(seen.has(status), `no ${status}`);
});
