import type { FastifyInstance } from "fastify";

/** Counts the requests that came in and are not answered yet. Made before any route. */
export class OpenReplies {
  #open = 0;
  #whenNone: (() => void) | undefined;

  constructor(app: FastifyInstance) {
    app.addHook("onRequest", (_request, { raw }, done) => {
      this.#open++;
      // Whether it was sent whole or the client hung up.
      raw.once("close", () => this.#closed());
      done();
    });
  }

  /** Resolves when none is open, after `timeoutMs` at the latest. */
  async left(timeoutMs: number): Promise<void> {
    if (this.#open === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }

  #closed(): void {
    if (--this.#open === 0) this.#whenNone?.();
  }
}
