// The server under attack, in a process of its own: three models that never fail, small limits. Answers "report" with its
// memory after a collection and with open connections and calls; ends when its parent lets go.
import { costs } from "../../../../packages/sheaf-server/dist/shared/costs.js";
import { createServer } from "../../../../packages/sheaf-server/dist/index.js";
import { jsonLimits, mostInputs } from "./hostile-json.mjs";

const doubling = {
  name: "double",
  input: { kind: "floats", length: 3 },
  output: { kind: "vector", length: 3 },
  run: (items) => items.map((item) => item.map((number) => number / 2)),
};
const measuring = {
  name: "measure",
  input: { kind: "text", maxTokens: 128 },
  output: { kind: "vector", length: 1 },
  run: (texts) => texts.map((text) => ({ vector: Float32Array.of(text.length), tokens: 1, truncated: false })),
};
const echoing = { name: "echo", input: { kind: "json" }, output: { kind: "json" }, run: (items) => items };

const settings = {
  port: 0,
  grpcPort: 0,
  logLevel: "silent",
  maxBodyBytes: 100_000,
  maxInputs: mostInputs,
  maxTextChars: 1000,
  uploadTimeoutMs: 2000,
};
Object.assign(costs, jsonLimits);
const server = await createServer({ models: [doubling, measuring, echoing], settings });
const url = await server.listen();
await server.ready();
process.send({ url, grpcAddress: server.grpcAddress });
process.on("message", () => {
  globalThis.gc();
  const models = server.models.all.map((model) => ({
    queued: model.stats().queued,
    inFlight: model.stats().inFlight,
  }));
  server.app.server.getConnections((_error, connections) => {
    process.send({
      heapBytes: process.memoryUsage().heapUsed,
      rssBytes: process.memoryUsage.rss(),
      connections,
      models,
    });
  });
});
process.on("disconnect", () => process.exit(0));
