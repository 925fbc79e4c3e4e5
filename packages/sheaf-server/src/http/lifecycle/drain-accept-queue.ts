import type { Server } from "node:http";

/**
 * Gives the event loop turns until some in a row bring no connection: connections that reached this machine before now are read and
 * answered. Closing at once would cut requests that wait in the kernel, sent long before the shutdown.
 */
export async function drainAcceptQueue(server: Server): Promise<void> {
  let connections = 0;
  const count = (): void => void connections++;
  server.on("connection", count);
  // Node takes one connection a turn, and reads from it in the next.
  for (let turns = 0, quiet = 0; quiet < 3 && turns < 2000; turns++) {
    const before = connections;
    await new Promise((resolve) => setImmediate(resolve));
    quiet = connections === before ? quiet + 1 : 0;
  }
  server.off("connection", count);
}
