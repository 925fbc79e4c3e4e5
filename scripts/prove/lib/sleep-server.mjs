// Serves the sleeping model, in a process of its own. Answers any message with its memory and its batcher's figures.
import { workerThread } from "../../../packages/sheaf/dist/node/index.js";
import { createServer } from "../../../packages/sheaf-server/dist/index.js";

const settings = { port: 0, logLevel: "silent", ...JSON.parse(process.argv[2]) };
const model = {
  name: "sleep",
  input: { kind: "text", maxTokens: 128 },
  output: { kind: "vector", length: 1 },
  // Not at a lower priority: it uses no core, and on a busy machine its wake-up would be late.
  run: workerThread(new URL("sleep-worker.mjs", import.meta.url), { niceness: 0 }),
};
const server = await createServer({ models: [model], settings });
const url = await server.listen();
await server.ready();
process.send({ url });
process.on("message", () => {
  const [model] = server.models.all;
  process.send({ rssBytes: process.memoryUsage.rss(), stats: model.stats() });
});
process.on("disconnect", () => process.exit(0));
