// Redis as the machine has it, started for a test on a free port in a folder of its own.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endProcess, freePort, isAlive } from "../../support/serving.mjs";
import { spawnDatabase } from "./database.mjs";
import { absent } from "../../support/absent.mjs";

/** For `test(name, { skip })`: false where Redis is, else why not. On CI its absence is a failure. */
export const skipWithoutRedis =
  spawnSync("redis-server", ["--version"]).status === 0
    ? false
    : absent("redis-server is not installed; apt-get install redis-server");

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
    const { child, log } = await spawnDatabase("redis-server", words, port);
    server = child;
    if (!isAlive(child)) throw new Error(`Redis did not start: ${log}`);
  };
  /** "SIGTERM" ends it in order, "SIGKILL" as a crash would. */
  const stop = (signal = "SIGTERM") => endProcess(server, signal);
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
