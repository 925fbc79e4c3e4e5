import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A port of 127.0.0.1 that nobody listens on now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
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
