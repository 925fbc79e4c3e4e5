import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { doubling, measuringTexts, serving } from "./serving.js";

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

test("/metrics counts items, batches and requests", async (t) => {
  const server = await serving(t, [doubling(), measuringTexts()]);
  await server.post("/infer", { inputs: [[1, 2, 3], [1, 2, 3]] }); // prettier-ignore
  await server.post("/infer", [1]);
  await server.post("/infer/measure", '"text"');
  const { text, headers } = await server.get("/metrics");
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  for (const line of [
    'sheaf_items_total{batcher="double",outcome="ok"} 2',
    'sheaf_items_total{batcher="measure",outcome="ok"} 1',
    'sheaf_batch_size_items_bucket{batcher="double",le="1"} 0',
    'sheaf_batch_size_items_bucket{batcher="double",le="2"} 1',
    'sheaf_batch_size_items_sum{batcher="double"} 2',
    'sheaf_run_seconds_count{batcher="double"} 1',
    'sheaf_queue_wait_seconds_count{batcher="double"} 2',
    'sheaf_queue_items{batcher="double"} 0',
    'sheaf_in_flight_batches{batcher="double"} 0',
    'sheaf_requests_total{route="/infer",status="200"} 1',
    'sheaf_requests_total{route="/infer",status="422"} 1',
    'sheaf_request_seconds_count{route="/infer"} 2',
  ])
    assert.ok(text.split("\n").includes(line), line);
  assert.match(text, /^sheaf_concurrency_batches\{batcher="double"\} \d+$/m);
  assert.match(text, /^sheaf_batches_total\{batcher="double",reason="\w+"\} 1$/m);
});

test("promtool takes /metrics without complaint", { skip: !hasPromtool && process.env["CI"] !== "true" && "promtool is not installed (apt-get install prometheus)" }, async (t) => {
  const server = await serving(t, [doubling('na"me\\')]);
  await server.post("/infer", [1, 2, 3]);
  await server.get("/nowhere");
  const { text } = await server.get("/metrics");
  const { status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  assert.equal(status, 0, `${stdout}${stderr}`);
}); // prettier-ignore
