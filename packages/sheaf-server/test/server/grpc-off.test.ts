import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { createServer } from "../../dist/index.js";
import { atEnd } from "../at-end.js";
import { doubling, serving } from "./serving.js";

/** Files of packages that only gRPC needs. */
const loaded = (): string[] =>
  Object.keys(createRequire(import.meta.url).cache).filter((file) => /node_modules\/(?:@grpc|protobufjs)\//.test(file));

test("without GRPC_PORT nothing of gRPC is loaded, and with it the server says where it listens", async (t) => {
  const off = await serving(t, [doubling()]);
  assert.equal((await off.post("/infer", [1, 2, 3])).status, 200);
  assert.equal(off.grpcAddress, undefined);
  assert.deepEqual(loaded(), []);
  const on = await serving(t, [doubling()], { grpcPort: 0 });
  assert.match(on.grpcAddress!, /^127\.0\.0\.1:\d+$/);
  assert.ok(loaded().length > 0);
  const port = Number(on.grpcAddress!.split(":")[1]);
  const settings = { port: 0, grpcPort: port, logLevel: "silent" as const };
  const second = await createServer({ models: [doubling()], settings });
  atEnd(t, () => second.close({ graceMs: 0 }));
  await assert.rejects(second.listen(), /port \d+ \(HOST, GRPC_PORT\): another program listens there\. Choose another port with GRPC_PORT or --grpc-port/); // prettier-ignore
});
