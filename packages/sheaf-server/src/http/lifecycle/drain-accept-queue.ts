import type { Server } from "node:http";
import { untilQuiet } from "./until-quiet.ts";

/** A caller opens its next connection within this time of an answer. */
const quietMs = 50;
/** Bounds the wait if callers keep coming. */
const longestMs = 500;

/**
 * Waits until hardly any connections come, then until several turns of the event loop in a row bring neither a connection nor a
 * request, so that all earlier connections have been read. Otherwise closing the listener would reset connections that wait in the
 * kernel, even ones that sent their requests long before the shutdown.
 */
export async function drainAcceptQueue(server: Server, graceMs: number): Promise<void> {
  await untilQuiet(server, { quietMs, longestMs: Math.min(longestMs, graceMs) });
  let arrivals = 0;
  const count = (): void => void arrivals++;
  server.on("connection", count).on("request", count);
  // Node accepts one connection per turn and reads from it in the next.
  for (let turns = 0, quiet = 0; quiet < 3 && turns < 2000; turns++) {
    const before = arrivals;
    await new Promise((resolve) => setImmediate(resolve));
    quiet = arrivals === before ? quiet + 1 : 0;
  }
  server.off("connection", count).off("request", count);
}
