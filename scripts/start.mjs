// `npm start [-- model … flags]`: builds, then serves in this same process, and ends when npm does. npm passes SIGTERM to its
// shell, which ends without passing it on; so the end of the shell counts as the signal.
process.stderr.write('Building both packages, then starting the server. It is ready once the log says "ready".\n');
await import("./build.mjs");

if (process.env.npm_lifecycle_event !== undefined) endWith(process.ppid);
process.argv.splice(2, 0, "serve");
await import("../packages/sheaf-server/bin/sheaf.js");

/** Has the server drain when the process of that number has ended, unless it does already. */
function endWith(parent) {
  let isStopping = false;
  for (const signal of ["SIGTERM", "SIGINT"])
    process.on(signal, () => {
      isStopping = true;
      // The server has no listener yet: it is still loading its models, and has nothing to finish.
      if (process.listenerCount(signal) === 1) process.exit(1);
    });
  const timer = setInterval(() => {
    if (!isStopping && !isParent(parent)) process.emit("SIGTERM", "SIGTERM");
  }, 250);
  timer.unref();
}

/** On Windows a process keeps the number of a parent that has ended. */
function isParent(pid) {
  try {
    return process.ppid === pid && process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}
