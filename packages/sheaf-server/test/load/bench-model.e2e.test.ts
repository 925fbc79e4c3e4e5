import assert from "node:assert/strict";
import { test } from "node:test";
import { bench } from "../../dist/cli/bench.js";
import { sheafEntry } from "../../dist/cli/entry.js";
import { serveModel } from "../../dist/load/http/server-process.js";
import type { LoadResult } from "../../dist/load/result.js";
import { collected } from "./streams.js";

test("configurations of a real model run side by side, and unbatched never batches", async () => {
  const streams = collected();
  const load = ["--pattern", "closed", "--callers", "16", "--duration", "700ms", "--warm-up", "300ms"];
  const code = await bench(["mlp", "--compare", "unbatched,auto", "--json", ...load], streams);
  assert.equal(code, 0, streams.err());
  const { results } = JSON.parse(streams.out()) as { results: LoadResult[] };
  assert.deepEqual(
    results.map(({ configuration }) => configuration),
    ["unbatched", "auto"],
  );
  const [unbatched, auto] = results;
  for (const { successRate, requests } of results) {
    assert.equal(successRate, 1);
    assert.ok(requests > 0);
  }
  assert.equal(unbatched!.batches!.meanSize, 1);
  assert.ok(auto!.batches!.meanSize > 1, `16 callers at once share batches: ${auto!.batches!.meanSize}`);
});

test("a model that cannot be served ends with exit 1 and the server's own words", async () => {
  const streams = collected();
  const code = await bench(["no-such-model", "--payload", "1"], streams);
  assert.equal(code, 1);
  assert.match(
    streams.err(),
    /sheaf serve no-such-model ended \(code 1\) before it was ready. Its output:\n.*no-such-model/s,
  );
});

test("an interrupt while a server starts leaves no process behind", async () => {
  const controller = new AbortController();
  const starting = serveModel({ entry: sheafEntry, model: "mlp", signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(starting, /enough/);
});
