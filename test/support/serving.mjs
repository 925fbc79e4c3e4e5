import { once } from "node:events";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * A port of 127.0.0.1 that is free now, and that no other test run has just chosen. Below those that the system gives to
 * outgoing connections: while a server is down, a client that tries its port again and again may be given that very port,
 * and then talks to itself and keeps the server from coming back.
 */
export async function freePort() {
  for (;;) {
    const port = lowestPort + Math.floor(Math.random() * (lowestOutgoingPort - lowestPort));
    if ((await canListen(port)) && reserve(port)) return port;
  }
}

const reservations = join(tmpdir(), `sheaf-ports-${userInfo().username}`);
/** Of a process that was killed before it could remove its own. */
const forgottenMs = 600_000;
const reserved = [];

/** False where another process has chosen the port, and perhaps does not listen on it yet. */
function reserve(port) {
  mkdirSync(reservations, { recursive: true });
  const file = join(reservations, String(port));
  const since = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (Date.now() - since < forgottenMs) return false;
  writeFileSync(file, "");
  if (reserved.push(file) === 1) process.once("exit", () => reserved.forEach((own) => rmSync(own, { force: true })));
  return true;
}

const lowestPort = 10_000;
/** Linux's; those of other systems are higher. */
const lowestOutgoingPort = 32_768;

function canListen(port) {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Asks every 100 ms until the answer is true: for `seconds` at most, and not after the process that answers has exited. */
export async function until(isSo, exited, seconds = 60) {
  let end;
  void exited.then((status) => (end = status ?? "no status"));
  for (let attempt = 0; attempt < seconds * 10; attempt++) {
    if (await Promise.resolve(isSo()).catch(() => false)) return;
    if (end !== undefined) throw new Error(`the process ended with ${end} before it answered`);
    await sleep(100);
  }
  throw new Error(`no answer within ${seconds} s`);
}

export const isAlive = (child) => child?.exitCode === null && child.signalCode === null;

/** Ends a process that has not ended by itself. */
export async function endProcess(child, signal) {
  if (!isAlive(child)) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}
