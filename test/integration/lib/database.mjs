import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive } from "../../support/serving.mjs";

/** Starts PostgreSQL or Redis; resolves with it and its log once it takes connections, or has ended. */
export async function spawnDatabase(command, words, port, options = {}) {
  const child = spawn(command, words, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-10_000)));
  for (const deadlineMs = performance.now() + 120_000; isAlive(child); await sleep(20)) {
    if (/ready to accept connections/i.test(log) && (await accepts(port))) break;
    if (performance.now() > deadlineMs) child.kill("SIGQUIT");
  }
  return { child, log };
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
