import type { FastifyBaseLogger } from "fastify";
import type { BatcherStats } from "sheaf";

const everyMs = 1000;

interface Watched {
  readonly name: string;
  stats(): Pick<BatcherStats, "overload">;
}

/** Logs when overload begins to stand at a model, so that its newest items go first, and when it has ended. */
export class OverloadLog {
  readonly #timer: NodeJS.Timeout;

  constructor(log: Pick<FastifyBaseLogger, "info" | "warn">, models: () => readonly Watched[]) {
    const overloaded = new WeakMap<Watched, number>();
    this.#timer = setInterval(() => {
      for (const model of models()) {
        const { overload } = model.stats();
        const forMs = overloaded.get(model);
        if (overload !== null) {
          if (forMs === undefined) {
            log.warn({ model: model.name, ...overload }, "standing overload: the newest requests are served first");
          }
          overloaded.set(model, overload.forMs);
        } else if (forMs !== undefined) {
          overloaded.delete(model);
          log.info({ model: model.name, forMs }, "overload has ended: requests are served in order of arrival");
        }
      }
    }, everyMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
