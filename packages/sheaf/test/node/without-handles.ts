// Run by without-handles.test.ts under `ulimit -n`: a worker dies while the process has no file handle left, and what ran
// and what waited then is told: `thread | process`, `exit | survive` (the batch ends its worker, or only did so once).
import { closeSync, openSync } from "node:fs";
import { createBatcher } from "../../dist/index.js";
import { workerProcess, workerThread } from "../../dist/node/index.js";
import type probe from "./probe-worker.js";

const url = new URL("./probe-worker.js", import.meta.url);
const [, , kind, batch] = process.argv;
const isGuilty = batch === "exit";
const options = { prefetch: 0 } as const;
const executor =
  kind === "thread" ? workerThread<typeof probe>(url, options) : workerProcess<typeof probe>(url, options);
const call = createBatcher(executor, { maxBatchSize: 1, onBatchError: isGuilty ? "fail" : "bisect" });
await call.ready();

const handles: number[] = [];
const failed = new Promise<void>((resolve) => {
  let crashes = 0;
  // The worker that died, a successor that could not be started, and an instance for the quarantine that could not.
  executor.onInstance(({ instance, why }) => {
    if (instance.state === "dead" && why !== undefined && ++crashes === (isGuilty ? 2 : 3)) resolve();
  });
});
const outcomes: Promise<string>[] = [];
try {
  for (;;) handles.push(openSync("/dev/null", "r"));
} catch {
  outcomes.push(
    outcomeOf(call(isGuilty ? { do: "exit" } : { do: "exit", ifFirst: true })),
    outcomeOf(call({ do: "double", n: 21 })),
  );
}
await failed;
for (const handle of handles) closeSync(handle);
console.log((await Promise.all(outcomes)).join(" "));
await call.close();

function outcomeOf(result: Promise<unknown>): Promise<string> {
  return result.then(String, (error: { code?: string }) => String(error.code));
}
