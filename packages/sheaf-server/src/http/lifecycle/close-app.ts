import type { FastifyInstance } from "fastify";
import { drainAcceptQueue } from "./drain-accept-queue.ts";
import { holdRequests } from "./hold-requests.ts";
import type { InFlightReplies } from "./in-flight-replies.ts";
import { leaveConnections } from "./leave-connections.ts";

/** How long the last replies may take to leave once every result is there. */
const lastRepliesMs = 2000;

/**
 * Ends an app whose work is done: requests that are on their way to it are still answered, then every connection goes.
 * It waits `graceMs` at most for clients that send no more.
 */
export async function closeApp(app: FastifyInstance, replies: InFlightReplies, graceMs: number): Promise<void> {
  if (app.server.listening) {
    // A client with an answer would open its next connection. While all of them wait, the accept queue gets empty.
    const answerHeld = holdRequests(app.server);
    await drainAcceptQueue(app.server, graceMs);
    const left = leaveConnections(app.server, graceMs);
    answerHeld();
    await left;
  }
  const closed = app.close();
  // Every result is there. A connection still open after the last reply is idle, or an upload without a caller.
  await replies.left(lastRepliesMs);
  app.server.closeAllConnections();
  await closed;
}
