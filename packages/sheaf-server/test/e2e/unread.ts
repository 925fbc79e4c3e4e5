import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { ready, type SheafProcess } from "./sheaf-process.js";

/**
 * Stops the process, sends it the request over connections that it knows and over fresh ones, and only then SIGTERM. Gives
 * the status of every answer; undefined where the connection ended without one.
 */
export async function statusesOfUnread(
  t: TestContext,
  served: SheafProcess,
  request: string,
): Promise<Set<number | undefined>> {
  const { port, hostname } = new URL(await ready(served));
  const opened = (): Socket => {
    const socket = connect(Number(port), hostname).setEncoding("latin1");
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
    return socket;
  };
  const kept = Array.from({ length: 5 }, opened);
  for (const socket of kept) {
    socket.write(request);
    await once(socket, "data");
  }
  served.child.kill("SIGSTOP");
  const fresh = Array.from({ length: 30 }, opened);
  await Promise.all(fresh.map((socket) => once(socket, "connect")));
  const answers = [...kept, ...fresh].map(async (socket) => {
    let text = "";
    socket.on("data", (chunk: string) => (text += chunk));
    socket.write(request);
    await once(socket, "close");
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(text) ?? [];
    return status === undefined ? undefined : Number(status);
  });
  // Written is not sent yet.
  await new Promise((resolve) => setImmediate(resolve));
  served.child.kill("SIGTERM");
  served.child.kill("SIGCONT");
  return new Set(await Promise.all(answers));
}
