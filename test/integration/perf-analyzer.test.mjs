// NVIDIA's perf_analyzer against the built server, as docs/guide/capacity.md says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { perfAnalyzer, skipWithoutPerfAnalyzer as skip } from "./lib/perf-analyzer.mjs";
import { serve, serveWithGrpc } from "./lib/serving.mjs";

const measure = (url, ...words) => perfAnalyzer("-m", "mlp", "-u", url.replace("http://", ""), ...words);

/** A number of its table. */
const valueOf = (output, label) => Number(new RegExp(`^ +${label}: ([\\d.]+)`, "m").exec(output)?.[1]);

for (const [name, { words, requests, rows }] of Object.entries({
  "single rows from 16 callers": { words: ["--concurrency-range", "16"], requests: 500, rows: 500 },
  "eight rows a request": { words: ["--concurrency-range", "4", "-b", "8"], requests: 100, rows: 800 },
}))
  test(`perf_analyzer: ${name}; its table has every request, and fewer runs than rows`, { skip }, async (t) => {
    const url = await serve(t, "mlp");
    const { status, output } = await measure(url, "-z", ...words, "--request-count", String(requests));
    t.diagnostic(output);
    assert.equal(status, 0, output);
    assert.equal(valueOf(output, "Request count"), requests);
    assert.ok(valueOf(output, "Throughput") > 0);
    // It first asks for the statistics when its callers have begun: what was answered by then is missing in its table.
    const counted = valueOf(output, "Successful request count");
    assert.ok(counted <= requests && counted > 0.8 * requests, `${counted} of ${requests}`);
    assert.equal(valueOf(output, "Inference count"), (counted * rows) / requests);
    const { model_stats: statistics } = await (await fetch(`${url}/v2/models/mlp/stats`)).json();
    assert.ok(statistics[0].inference_stats.success.count >= requests);
    const runs = valueOf(output, "Execution count");
    assert.ok(runs > 0 && runs < rows, `${runs} runs`);
    assert.doesNotMatch(output, /fail|error/i);
  });

for (const [name, words] of Object.entries({ "unary calls": [], "a stream": ["--streaming"] }))
  test(
    `perf_analyzer over gRPC, ${name}: its table has every request, and fewer runs than rows`,
    { skip },
    async (t) => {
      const { grpcAddress } = await serveWithGrpc(t, "mlp");
      const load = ["-z", "--concurrency-range", "16", "--request-count", "500", ...words];
      const { status, output } = await perfAnalyzer("-m", "mlp", "-u", grpcAddress, "-i", "grpc", ...load);
      t.diagnostic(output);
      assert.equal(status, 0, output);
      assert.equal(valueOf(output, "Request count"), 500);
      const runs = valueOf(output, "Execution count");
      assert.ok(runs > 0 && runs < 500, `${runs} runs`);
      assert.doesNotMatch(output, /fail|error/i);
    },
  );

test("perf_analyzer: its random bytes hold NaN, and it shows why they are refused", { skip }, async (t) => {
  const url = await serve(t, "mlp");
  const { status, output } = await measure(url, "--concurrency-range", "1", "--request-count", "100");
  assert.notEqual(status, 0);
  assert.match(output, /must be a finite number, got NaN/);
});
