import type { FastifyInstance } from "fastify";
import { drainAcceptQueue } from "./drain-accept-queue.ts";
import { holdRequests } from "./hold-requests.ts";
import type { InFlightReplies } from "./in-flight-replies.ts";
import { leaveConnections } from "./leave-connections.ts";

/** How long the last replies may take to be sent once every result is there. */
const lastRepliesMs = 2000;

/**
 * Closes an app whose work is done: requests already on their way are still answered, then every connection is closed. Waits at most
 * `graceMs` for clients that have stopped sending.
 */
export async function closeApp(app: FastifyInstance, replies: InFlightReplies, graceMs: number): Promise<void> {
  if (app.server.listening) {
    // An answered client would open its next connection; while all clients wait, the accept queue runs empty.
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
