import type { Server as HttpServer } from "node:http";
import { Server } from "node:net";
import { untilQuiet } from "./until-quiet.ts";

/** Clients in a data centre are a few milliseconds away; a busy one sends its next request within this time. */
const quietMs = 250;
/** Bounds the wait if requests trickle in. */
const longestMs = 2000;

/**
 * Stops listening at once, but keeps open connections until all have ended or none has brought a request for a while. A client that
 * reuses a connection cannot know that it is about to close; its request is still answered, with `Connection: close`. Node's own
 * `close` would end idle connections at once, including new ones whose first request is on its way, and their clients would see a
 * connection error.
 */
export function leaveConnections(server: HttpServer, graceMs: number): Promise<void> {
  const done = new Promise<void>((resolve) => void Server.prototype.close.call(server, () => resolve()));
  return untilQuiet(server, { quietMs, longestMs: Math.min(longestMs, graceMs), done });
}
