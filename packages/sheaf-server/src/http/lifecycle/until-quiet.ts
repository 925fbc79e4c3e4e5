import type { Server } from "node:http";
import { within } from "sheaf/internal";

interface QuietOptions {
  readonly quietMs: number;
  /** Bounds the wait if clients never pause. */
  readonly longestMs: number;
  readonly done?: Promise<void> | undefined;
}

/** Resolves when neither a connection nor a request has come for `quietMs`. */
export async function untilQuiet(server: Server, { quietMs, longestMs, done }: QuietOptions): Promise<void> {
  let arrivals = 0;
  let isDone = false;
  const count = (): void => void arrivals++;
  const orDone = done?.then(() => void (isDone = true)) ?? new Promise<void>(() => undefined);
  server.on("connection", count).on("request", count);
  let before = -1;
  for (let leftMs = longestMs; leftMs > 0 && !isDone && arrivals !== before; leftMs -= quietMs) {
    before = arrivals;
    await within(orDone, Math.min(quietMs, leftMs));
    // Timers run before sockets are read: after a stop of the process, arrivals are still unread here.
    await new Promise((resolve) => setImmediate(resolve));
  }
  server.off("connection", count).off("request", count);
}
