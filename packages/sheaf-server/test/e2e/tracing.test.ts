import assert from "node:assert/strict";
import { test } from "node:test";
import { ready, sheaf } from "./sheaf-process.js";

test("sheaf serve with an SDK preloaded continues a request's trace and links its batch", async (t) => {
  const preload = new URL("./fixtures/tracing.js", import.meta.url).href;
  const served = sheaf(t, ["serve", "mlp", "--port", "0"], { NODE_OPTIONS: `--import ${preload}` });
  const url = await ready(served);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const response = await fetch(`${url}/infer`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: JSON.stringify(Array.from({ length: 768 }, () => 0.5)),
  });
  assert.equal(response.status, 200);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
  const spans = served.output.stderr
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as any);
  const request = spans.find(({ name }) => name === "POST /infer");
  const batch = spans.find(({ name }) => name === "mlp batch");
  assert.deepEqual([request.traceId, request.parentId], [traceId, "b7ad6b7169203331"]);
  assert.equal(request.attributes["sheaf.batch.size"], 1);
  assert.deepEqual(batch.links, [request.spanId]);
});
