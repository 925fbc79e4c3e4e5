import assert from "node:assert/strict";
import { test } from "node:test";
import { nats, skip } from "./nats.js";
import { post, type Reply } from "../asking.js";
import { ready, sheaf, type SheafProcess } from "./sheaf-process.js";

const preload = new URL("./fixtures/tracing.js", import.meta.url).href;
const traceId = "0af7651916cd43dd8448eb211c80319c";
const clientId = "b7ad6b7169203331";

const infer = (url: string): Promise<Reply> =>
  post(`${url}/infer`, new Array(768).fill(0.5), { traceparent: `00-${traceId}-${clientId}-01` });

const spansOf = ({ output }: SheafProcess): any[] =>
  output.stderr
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

test("sheaf serve with an SDK preloaded continues a request's trace and links its batch", async (t) => {
  const served = sheaf(t, ["serve", "mlp", "--port", "0"], { NODE_OPTIONS: `--import ${preload}` });
  const url = await ready(served);
  assert.equal((await infer(url)).status, 200);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
  const spans = spansOf(served);
  const request = spans.find(({ name }) => name === "POST /infer");
  const batch = spans.find(({ name }) => name === "mlp batch");
  assert.deepEqual([request.traceId, request.parentId], [traceId, clientId]);
  assert.equal(request.attributes["sheaf.batch.size"], 1);
  assert.deepEqual(batch.links, [request.spanId]);
});

for (const gatewayTraces of [true, false])
  test(
    `a request's trace goes on at the worker of a fleet, ${gatewayTraces ? "below the gateway's span" : "also where the gateway traces nothing"}`,
    { skip },
    async (t) => {
      const start = (role: string, env: Record<string, string>): SheafProcess =>
        sheaf(t, ["serve", "mlp", "--role", role, "--port", "0"], {
          NATS_URL: nats.url,
          WARMUP_BATCHES: "1",
          ...env,
        });
      const tracing = { NODE_OPTIONS: `--import ${preload}` };
      const worker = start("worker", tracing);
      const gateway = start("gateway", gatewayTraces ? tracing : {});
      const [url] = await Promise.all([ready(gateway), ready(worker)]);
      assert.equal((await infer(url)).status, 200);
      for (const member of [gateway, worker]) {
        member.child.kill("SIGTERM");
        assert.equal(await member.ended, 0);
      }
      const request = spansOf(gateway).find(({ name }) => name === "POST /infer");
      const spans = spansOf(worker);
      const item = spans.find(({ name }) => name === "mlp item");
      const batch = spans.find(({ name }) => name === "mlp batch");
      assert.deepEqual([item.traceId, item.parentId], [traceId, gatewayTraces ? request.spanId : clientId]);
      assert.equal(item.attributes["sheaf.batch.size"], 1);
      assert.deepEqual(batch.links, [item.spanId]);
    },
  );
