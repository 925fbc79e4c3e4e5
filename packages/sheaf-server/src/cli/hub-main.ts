// First: it must run before anything loads ONNX Runtime or starts a worker.
import "../shared/without-telemetry.ts";
import { rmSync } from "node:fs";
import { serveModels } from "./serve.ts";
import { ordersOf } from "./processes/start.ts";

const { start, signals, graceMs } = await ordersOf();
const { served, settings, hubPath, httpPath } = start;
// Those of a hub that was killed.
for (const path of [hubPath, httpPath]) rmSync(path, { force: true });
try {
  process.exitCode = await serveModels(served, settings, {
    hubPath,
    httpPath,
    signals,
    graceMs,
    onReady: () => process.send?.({ isServing: true }),
  });
} catch (error) {
  process.stderr.write(`sheaf serve: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
// Not disconnect, which means that the first process has gone.
process.channel?.unref();
