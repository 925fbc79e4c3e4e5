import type { Server } from "node:http";
import { untilQuiet } from "./until-quiet.ts";

/** A caller that has just got its answer opens its next connection within this. */
const quietMs = 50;
/** A bound for callers that keep coming. */
const longestMs = 500;

/**
 * Waits until hardly a connection comes, and then gives the event loop turns until some in a row bring neither a
 * connection nor a request: connections that reached this machine before are read. To stop listening resets connections
 * that wait in the kernel, also such that sent their requests long before the shutdown.
 */
export async function drainAcceptQueue(server: Server, graceMs: number): Promise<void> {
  await untilQuiet(server, { quietMs, longestMs: Math.min(longestMs, graceMs) });
  let arrivals = 0;
  const count = (): void => void arrivals++;
  server.on("connection", count).on("request", count);
  // Node takes one connection a turn, and reads from it in the next.
  for (let turns = 0, quiet = 0; quiet < 3 && turns < 2000; turns++) {
    const before = arrivals;
    await new Promise((resolve) => setImmediate(resolve));
    quiet = arrivals === before ? quiet + 1 : 0;
  }
  server.off("connection", count).off("request", count);
}
