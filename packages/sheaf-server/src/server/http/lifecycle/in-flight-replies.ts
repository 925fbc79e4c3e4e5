import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

/** How often slow readers are looked for, at most. */
const longestLookMs = 5000;

/** The replies to requests that came in, until they are sent whole or their client hangs up. Made before any route. */
export class InFlightReplies {
  readonly #open = new Set<ServerResponse>();
  #whenNone: (() => void) | undefined;

  constructor(app: FastifyInstance) {
    app.addHook("onRequest", (_request, { raw }, done) => {
      this.#open.add(raw);
      raw.once("close", () => this.#closed(raw));
      done();
    });
  }

  /** Resolves when none is open, after `timeoutMs` at the latest. */
  async left(timeoutMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }

  /**
   * Cuts replies that were handed over whole and are not read within `timeoutMs`: byte by byte a client could hold one for
   * as long as it likes. Streams are handed over as they are read, and may last. Until the app closes.
   */
  cutAfter(timeoutMs: number, app: FastifyInstance): void {
    const handedOverAtMs = new WeakMap<ServerResponse, number>();
    const look = (): void => {
      const nowMs = performance.now();
      for (const reply of this.#open) {
        // One that is pipelined behind another has no socket yet.
        if (!reply.writableEnded || reply.socket === null) continue;
        const sinceMs = handedOverAtMs.get(reply);
        if (sinceMs === undefined) handedOverAtMs.set(reply, nowMs);
        else if (nowMs - sinceMs >= timeoutMs) reply.destroy();
      }
    };
    const timer = setInterval(look, Math.min(longestLookMs, timeoutMs / 4)).unref();
    app.addHook("onClose", async () => clearInterval(timer));
  }

  #closed(reply: ServerResponse): void {
    this.#open.delete(reply);
    if (this.#open.size === 0) this.#whenNone?.();
  }
}
