import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { within } from "sheaf/internal";

/** How often slow readers are looked for, at most. */
const longestLookMs = 5000;

interface OpenReply {
  readonly reply: ServerResponse;
  /** Where it stands in the list of open ones. */
  place: number;
  handedOverAtMs: number | undefined;
}

/** The replies to requests that came in, until they are sent whole or their client hangs up. Made before any route. */
export class InFlightReplies {
  // A list and not a Set: a Set that requests enter and leave all the time hands its old tables to V8's old generation,
  // and with them the requests that were open then. Two thirds of a request's garbage there came from that, and the
  // pauses to collect it.
  readonly #open: OpenReply[] = [];
  #whenNone: (() => void) | undefined;

  constructor(app: FastifyInstance) {
    app.addHook("onRequest", (_request, { raw }, done) => {
      const open: OpenReply = { reply: raw, place: this.#open.length, handedOverAtMs: undefined };
      this.#open.push(open);
      raw.once("close", () => this.#closed(open));
      done();
    });
  }

  /** Resolves when none is open, after `timeoutMs` at the latest. */
  async left(timeoutMs: number): Promise<void> {
    if (this.#open.length === 0) return;
    await within(new Promise<void>((resolve) => (this.#whenNone = resolve)), timeoutMs);
  }

  /**
   * Cuts replies that were handed over whole and are not read within `timeoutMs`: byte by byte a client could hold one for
   * as long as it likes. Streams are handed over as they are read, and may last. Until the app closes.
   */
  cutAfter(timeoutMs: number, app: FastifyInstance): void {
    const look = (): void => {
      const nowMs = performance.now();
      for (const open of this.#open) {
        // One that is pipelined behind another has no socket yet.
        if (!open.reply.writableEnded || open.reply.socket === null) continue;
        open.handedOverAtMs ??= nowMs;
        if (nowMs - open.handedOverAtMs >= timeoutMs) open.reply.destroy();
      }
    };
    const timer = setInterval(look, Math.min(longestLookMs, timeoutMs / 4)).unref();
    app.addHook("onClose", async () => clearInterval(timer));
  }

  #closed({ place }: OpenReply): void {
    const last = this.#open.pop()!;
    if (last.place !== place) this.#open[(last.place = place)] = last;
    if (this.#open.length === 0) this.#whenNone?.();
  }
}
