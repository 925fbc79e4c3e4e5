// Prints the largest young heap that a churn of objects makes, in MiB: here, and in a worker as the command starts them.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

if (isMainThread) {
  const main = mostUnderChurn();
  // As packages/sheaf-server/bin/sheaf.js does.
  setFlagsFromString("--max-semi-space-size=2");
  new Worker(new URL(import.meta.url)).on("message", (worker) => console.log(JSON.stringify({ main, worker })));
} else parentPort.postMessage(mostUnderChurn());

function mostUnderChurn() {
  const kept = [];
  let most = 0;
  for (let i = 0; i < 3e6; i++) {
    kept[i % 50_000] = { i, list: [i] };
    if (i % 1e5 !== 0) continue;
    const { space_size: bytes } = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
    most = Math.max(most, bytes / 2 ** 20);
  }
  return most;
}
