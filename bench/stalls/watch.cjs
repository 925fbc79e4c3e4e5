// Loaded into a process with --require: watches its main thread, and answers "begin" and "end" of its parent.
const { readFileSync } = require("node:fs");
const { isMainThread } = require("node:worker_threads");

const everyMs = 1;
/** What stands before the fields of a stat file may hold spaces; user and system time are the 12th and 13th after it. */
const cpuTicks = () => {
  const text = readFileSync(`/proc/self/task/${process.pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
};

if (isMainThread && process.send !== undefined) {
  let lateMs = [];
  let lastMs = performance.now();
  let ticksBefore = 0;
  setInterval(() => {
    const nowMs = performance.now();
    lateMs.push(nowMs - lastMs - everyMs);
    lastMs = nowMs;
  }, everyMs).unref();
  process.on("message", (message) => {
    if (message === "begin") {
      lateMs = [];
      ticksBefore = cpuTicks();
    } else process.send({ lateMs: lateMs.filter((ms) => ms > 2), cpuMs: 10 * (cpuTicks() - ticksBefore) });
  });
  process.channel.unref();
  // A process with nothing else to do stays for its parent.
  if (require.main === module) setInterval(() => undefined, 1 << 30);
}
