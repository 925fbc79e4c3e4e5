import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { status, type ServiceError } from "@grpc/grpc-js";
import { floatsRequest, grpcServing } from "../server/grpc-serving.js";
import { doubling } from "../server/serving.js";
import { bearer, entry, keysFile, sha256 } from "./keys.js";

const request = floatsRequest("double", 1, 2, 3);

test("over gRPC the same keys, lanes and bounds hold, and HTTP and gRPC share a tenant's", async (t) => {
  const file = keysFile(t, [entry("a"), entry("slow", { itemsPerSecond: 0.01 })]);
  const server = await grpcServing(t, [doubling()], { apiKeysFile: file.path });
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

test("an open stream is bounded message by message, and ends once its key is replaced or gone", async (t) => {
  const file = keysFile(t, [entry("a", { itemsPerSecond: 0.01 }), entry("b"), entry("c")]);
  const server = await grpcServing(t, [doubling()], { apiKeysFile: file.path });
  const [a, b, c] = ["sk-a", "sk-b", "sk-c"].map((key) =>
    server.stream({ ...bearer(key), "x-sheaf-priority": "immediate" }),
  );
  t.after(() => [a, b, c].forEach((stream) => stream!.cancel()));
  const ends = [b, c].map((stream) => once(stream!, "end").then(() => "end", (error: ServiceError) => `${error.code} ${error.details}`)); // prettier-ignore
  a!.on("error", () => undefined);
  const ask = async (stream: typeof a) => {
    const answered = once(stream!, "data");
    stream!.write(request);
    return (await answered)[0] as { error_message: string; infer_response: { parameters: any } };
  };
  const first = await ask(a);
  assert.equal(first.infer_response.parameters.x_sheaf_priority.string_param, "interactive");
  assert.match((await ask(a)).error_message, /0\.01 items a second/);
  assert.equal((await ask(b)).error_message, "");
  assert.equal((await ask(c)).error_message, "");
  // The name of b stays, with another key.
  file.write({ keys: [entry("a"), { ...entry("b"), sha256: sha256("sk-b2") }] });
  while ((await server.call("ModelInfer", request, bearer("sk-b2"))).status !== "OK")
    await new Promise((resolve) => setTimeout(resolve, 20));
  for (const stream of [b, c]) stream!.write(request);
  for (const end of ends) assert.equal(await end, `${status.UNAUTHENTICATED} The key is no longer valid.`);
});
