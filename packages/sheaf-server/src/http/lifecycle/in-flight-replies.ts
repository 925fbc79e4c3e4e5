import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { within } from "sheaf/internal";
import { costs } from "../../shared/costs.ts";

/** Longest time between two looks for slow readers. */
const longestLookMs = 5000;

interface OpenReply {
  readonly reply: ServerResponse;
  /** Its index in the list of open replies. */
  place: number;
  handedOverAtMs: number | undefined;
}

/** Replies that have not been sent completely and whose client has not hung up. Create it before any route. */
export class InFlightReplies {
  // Not a Set: when entries come and go, its old tables reach V8's old generation and take the then open requests with them. Two
  // thirds of a request's garbage there, and the pauses to collect it, came from that.
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

  /** Resolves when no reply is open, after `timeoutMs` at the latest. */
  async left(timeoutMs: number): Promise<void> {
    if (this.#open.length === 0) return;
    await within(new Promise<void>((resolve) => (this.#whenNone = resolve)), timeoutMs);
  }

  /**
   * Cuts off replies that are complete but not read in time: reading byte by byte, a client could hold one forever.
   * Streams are produced as they are read and may last. Runs until the app closes.
   */
  cutUnread(app: FastifyInstance): void {
    const look = (): void => {
      const nowMs = performance.now();
      for (const open of this.#open) {
        // A reply that is pipelined behind another has no socket yet.
        if (!open.reply.writableEnded || open.reply.socket === null) continue;
        open.handedOverAtMs ??= nowMs;
        if (nowMs - open.handedOverAtMs >= costs.replyMs) open.reply.destroy();
      }
    };
    const timer = setInterval(look, Math.min(longestLookMs, costs.replyMs / 4)).unref();
    app.addHook("onClose", async () => clearInterval(timer));
  }

  #closed({ place }: OpenReply): void {
    const last = this.#open.pop()!;
    if (last.place !== place) this.#open[(last.place = place)] = last;
    if (this.#open.length === 0) this.#whenNone?.();
  }
}
