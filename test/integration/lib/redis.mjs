// Redis as the machine has it, started for a test on a free port in a folder of its own.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/serving.mjs";

/** For `test(name, { skip })`: false where Redis is, else why not. On CI its absence is a failure. */
export const skipWithoutRedis = spawnSync("redis-server", ["--version"]).status === 0 ? false : absent();

/**
 * Starts a server that writes every command to its log before it answers, so that a restart, even after `SIGKILL`, loses
 * nothing that was acknowledged. `close` removes its folder.
 */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-redis-"));
  const port = await freePort();
  const settings = { port, bind: "127.0.0.1", dir: folder, appendonly: "yes", appendfsync: "always", save: "" };
  const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  let server;
  const start = async () => {
    server = spawn("redis-server", words, { stdio: ["ignore", "pipe", "ignore"] });
    let log = "";
    server.stdout.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-5000)));
    for (const deadlineMs = performance.now() + 120_000; ; await sleep(20)) {
      if (log.includes("Ready to accept connections") && (await accepts(port))) return;
      if (server.exitCode !== null || performance.now() > deadlineMs) throw new Error(`Redis did not start: ${log}`);
    }
  };
  /** "SIGTERM" ends it in order, "SIGKILL" as a crash would. */
  const stop = async (signal = "SIGTERM") => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    await ended;
  };
  await start();
  return {
    port,
    start,
    stop,
    async close() {
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function absent() {
  const message = "redis-server is not installed; apt-get install redis-server";
  if (process.env.CI === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}

async function accepts(port) {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
