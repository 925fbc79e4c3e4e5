/** Which source files run in this thread, by V8's precise coverage. Preloaded with `--import`, also in worker threads. */
import { Session } from "node:inspector";
import { register } from "node:module";
import { isMainThread, threadId } from "node:worker_threads";

// The server imports the library as it is published, bundled; the walk is through the modules behind it.
register(new URL("./from-modules.mjs", import.meta.url));

const session = new Session();
session.connect();
const post = (method, params) =>
  new Promise((resolve, reject) => {
    session.post(method, params, (error, result) => (error ? reject(error) : resolve(result)));
  });
await post("Profiler.enable");
await post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Built files with a function that was called since the last look. */
export async function calledFiles() {
  const { result } = await post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url }) => url.includes("/packages/") && url.includes("/dist/"))
    .filter(({ functions }) => functions.some(({ ranges: [range] }) => range.count > 0))
    .map(({ url }) => url.slice(url.indexOf("/packages/") + "/packages/".length));
}

if (!isMainThread) {
  const asked = new BroadcastChannel("covered: look");
  const answers = new BroadcastChannel("covered: files");
  asked.addEventListener("message", async () => answers.postMessage({ threadId, files: await calledFiles() }));
  asked.unref();
  answers.unref();
}
