import type { Server } from "node:http";
import { within } from "sheaf/internal";

interface QuietOptions {
  readonly quietMs: number;
  /** A bound for clients that never pause. */
  readonly longestMs: number;
  /** Ends the wait early. */
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
    // Timers come before sockets: a process that was stopped meanwhile has not read its arrivals yet.
    await new Promise((resolve) => setImmediate(resolve));
  }
  server.off("connection", count).off("request", count);
}
