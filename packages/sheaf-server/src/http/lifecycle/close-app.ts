import type { FastifyInstance } from "fastify";
import type { InFlightReplies } from "./in-flight-replies.ts";
import { drainAcceptQueue } from "./drain-accept-queue.ts";

/** How long the last replies may take to leave once every result is there. */
const lastRepliesMs = 2000;

/** Ends an app whose work is done: requests that reached this machine before are still answered, then every connection goes. */
export async function closeApp(app: FastifyInstance, replies: InFlightReplies): Promise<void> {
  await drainAcceptQueue(app.server);
  const closed = app.close();
  // Every result is there. A connection still open after the last reply is idle, or an upload without a caller.
  await replies.left(lastRepliesMs);
  app.server.closeAllConnections();
  await closed;
}
