// Loaded into a process with --require: watches its main thread, and answers "begin" and "end" of its parent.
const { isMainThread } = require("node:worker_threads");

const everyMs = 1;
const shortestStallMs = 2;

if (isMainThread && process.send !== undefined) {
  let timer;
  let lateMs = [];
  // Only in between: a thousand timers a second are CPU time that a server without them does not use.
  const begin = () => {
    let lastMs = performance.now();
    timer = setInterval(() => {
      const nowMs = performance.now();
      const late = nowMs - lastMs - everyMs;
      if (late > shortestStallMs) lateMs.push(late);
      lastMs = nowMs;
    }, everyMs).unref();
  };
  process.on("message", (message) => {
    if (message === "begin") return begin();
    clearInterval(timer);
    process.send(lateMs);
    lateMs = [];
  });
  process.channel.unref();
  // A process with nothing else to do stays for its parent.
  if (require.main === module) setInterval(() => undefined, 1 << 30);
}
