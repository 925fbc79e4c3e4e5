import type { FastifyBaseLogger } from "fastify";
import type { BatcherStats } from "sheaf";

const everyMs = 1000;

interface Watched {
  readonly name: string;
  stats(): Pick<BatcherStats, "overload" | "pause">;
}

/** Logs when a model's standing overload (newest items go first) or a pause of dispatch begins, and when it ends. */
export class OverloadLog {
  readonly #timer: NodeJS.Timeout;

  constructor(log: Pick<FastifyBaseLogger, "info" | "warn">, models: () => readonly Watched[]) {
    const overloaded = new WeakMap<Watched, number>();
    const paused = new WeakSet<Watched>();
    this.#timer = setInterval(() => {
      for (const model of models()) {
        const { overload, pause } = model.stats();
        if (pause !== null && !paused.has(model)) log.warn({ model: model.name, ...pause }, "dispatch is paused");
        if (pause !== null) paused.add(model);
        else if (paused.delete(model)) log.info({ model: model.name }, "dispatch goes on after a pause");
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
