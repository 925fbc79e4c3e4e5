// Two models over gRPC: single requests, and a stream of them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { credentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { builtinModels, createServer, defaultSettings, workerModel } from "sheaf-server";

// As `npx sheaf serve mlp use-lite --grpc-port 8001`; 0 takes any port that is free.
const settings = { ...defaultSettings, port: 0, grpcPort: 0, logLevel: "warn" };
const models = [builtinModels.mlp(), builtinModels["use-lite"]()].map((spec) => workerModel(spec, settings));
const server = await createServer({ models, settings });
await server.listen();
await server.ready();

// The definition comes with the package; a client in any language can be made from it, or from Triton's.
const packageFolder = dirname(createRequire(import.meta.url).resolve("sheaf-server/package.json"));
const file = join(packageFolder, "src/server/protocols/grpc/inference.proto");
const { GRPCInferenceService } = loadPackageDefinition(loadSync(file, { keepCase: true, longs: Number })).inference;
const client = new GRPCInferenceService(server.grpcAddress, credentials.createInsecure());
const infer = promisify(client.ModelInfer).bind(client);

// Numbers go as their bytes, and come back so.
const numbers = Float32Array.from({ length: 768 }, (_, i) => Math.sin(i));
const { outputs, raw_output_contents } = await infer({
  model_name: "mlp",
  inputs: [{ name: "input", datatype: "FP32", shape: [1, 768] }],
  raw_input_contents: [Buffer.from(numbers.buffer)],
});
console.log(`mlp: ${outputs[0].name} [${outputs[0].shape}], ${raw_output_contents[0].length} bytes`);
assert.equal(raw_output_contents[0].length, 768 * 4);

// Texts go as elements; each request of a stream has its own reply, in order.
const texts = ["The cat sits outside", "A man is playing guitar", "", "The new movie is awesome"];
const stream = client.ModelStreamInfer();
const replies = [];
stream.on("data", (reply) => replies.push(reply));
for (const [i, text] of texts.entries())
  stream.write({
    model_name: "use-lite",
    id: String(i),
    inputs: [{ name: "text", datatype: "BYTES", shape: [1], contents: { bytes_contents: [Buffer.from(text)] } }],
  });
stream.end();
await once(stream, "end");
for (const { error_message, infer_response: reply } of replies)
  console.log(`use-lite ${reply.id}: ${error_message || `${reply.outputs[0].shape[1]} numbers`}`);
assert.deepEqual(
  replies.map(({ error_message: error }) => error === ""),
  [true, true, false, true],
);

client.close();
await server.close();
