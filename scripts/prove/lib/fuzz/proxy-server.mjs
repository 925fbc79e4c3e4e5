// `sheaf proxy` under attack, in a process of its own, before the API that its first argument names. Answers "report" with
// its memory after a collection and with open connections; ends when its parent lets go.
import { createProxy } from "../../../../packages/sheaf-server/dist/index.js";
import { costs } from "../../../../packages/sheaf-server/dist/shared/costs.js";
import { jsonLimits } from "./hostile-json.mjs";

const settings = { port: 0, logLevel: "silent", maxBodyBytes: 100_000, cacheMaxBytes: 1_000_000 };
Object.assign(costs, jsonLimits);
const proxy = await createProxy({ upstream: process.argv[2], settings });
process.send({ url: await proxy.listen() });
process.on("message", () => {
  globalThis.gc();
  proxy.app.server.getConnections((_error, connections) =>
    process.send({ heapBytes: process.memoryUsage().heapUsed, rssBytes: process.memoryUsage.rss(), connections }),
  );
});
process.on("disconnect", () => process.exit(0));
