import { pino, type DestinationStream } from "pino";

/** Log lines that wait for a disk without room, in characters; further ones are dropped. */
const maxWaiting = 1_048_576;

/**
 * Standard output for log lines. Where it takes none (a full disk, a reader that has gone) lines are dropped: pino's own
 * would throw in the code that logs, which ends a server or leaves it half started.
 */
export function logDestination(): DestinationStream {
  const stream = pino.destination({ fd: 1, sync: true, maxLength: maxWaiting });
  stream.on("error", () => undefined);
  return stream;
}
