import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { floatsRequest, grpcServing } from "../server/grpc-serving.js";
import { doubling } from "../server/serving.js";
import { bearer, entry, keysFile } from "./keys.js";

const request = floatsRequest("double", 1, 2, 3);

test("over gRPC the same keys, lanes and bounds hold, and HTTP and gRPC share a tenant's", async (t) => {
  const file = keysFile(t, [entry("a"), entry("slow", { itemsPerSecond: 0.01 })]);
  const server = await grpcServing(t, [doubling()], { apiKeysFile: file.path });
  await server.ready();
  const infer = (key: string, metadata: Record<string, string> = {}) =>
    server.call("ModelInfer", request, { ...bearer(key), ...metadata });

  const refused = await server.call("ModelInfer", request, bearer("sk-none"));
  assert.deepEqual([refused.status, refused.details], ["UNAUTHENTICATED", "The key is wrong."]);
  assert.equal((await infer("sk-a")).status, "OK");
  const lowered = await infer("sk-a", { "x-sheaf-priority": "immediate" });
  assert.equal(lowered.status, "OK");
  assert.equal(lowered.reply.parameters.x_sheaf_priority.string_param, "interactive");
  assert.deepEqual((await infer("sk-a", { "x-sheaf-priority": "bulk" })).reply.parameters, {});

  assert.equal((await server.post("/infer", [1, 2, 3], bearer("sk-slow"))).status, 200);
  const limited = await infer("sk-slow");
  assert.equal(limited.status, "RESOURCE_EXHAUSTED");
  assert.match(limited.details, /^slow may send 0\.01 items a second/);
  assert.ok(Number(limited.trailers["retry-after-ms"]) > 90_000, String(limited.trailers["retry-after-ms"]));
});

test("an open stream is bounded message by message, and takes no more once its key is gone", async (t) => {
  const file = keysFile(t, [entry("a", { itemsPerSecond: 0.01 }), entry("b")]);
  const server = await grpcServing(t, [doubling()], { apiKeysFile: file.path });
  await server.ready();
  const [a, b] = ["sk-a", "sk-b"].map((key) => server.stream({ ...bearer(key), "x-sheaf-priority": "immediate" }));
  t.after(() => [a, b].forEach((stream) => stream!.cancel()));
  for (const stream of [a, b]) stream!.on("error", () => undefined);
  const ask = async (stream: typeof a) => {
    const answered = once(stream!, "data");
    stream!.write(request);
    return (await answered)[0] as { error_message: string; infer_response: { parameters: any } };
  };
  const first = await ask(a);
  assert.equal(first.infer_response.parameters.x_sheaf_priority.string_param, "interactive");
  assert.match((await ask(a)).error_message, /0\.01 items a second/);
  assert.equal((await ask(b)).error_message, "");
  file.write({ keys: [entry("a")] });
  for (let message = ""; message === ""; message = (await ask(b)).error_message)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await ask(b)).error_message, "The key is no longer valid.");
});
