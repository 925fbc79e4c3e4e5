// Loaded into a process with --require: watches its main thread, and answers "begin" and "end" of its parent.
const { isMainThread } = require("node:worker_threads");

const everyMs = 1;
const shortestStallMs = 2;

if (isMainThread && process.send !== undefined) {
  let lateMs = [];
  let lastMs = performance.now();
  setInterval(() => {
    const nowMs = performance.now();
    const late = nowMs - lastMs - everyMs;
    if (late > shortestStallMs) lateMs.push(late);
    lastMs = nowMs;
  }, everyMs).unref();
  process.on("message", (message) => {
    if (message === "begin") lateMs = [];
    else process.send(lateMs);
  });
  process.channel.unref();
  // A process with nothing else to do stays for its parent.
  if (require.main === module) setInterval(() => undefined, 1 << 30);
}
