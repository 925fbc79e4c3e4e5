import type { FastifyBaseLogger } from "fastify";
import type { BatcherStats } from "sheaf";

const everyMs = 60_000;

interface Advised {
  readonly name: string;
  stats(): Pick<BatcherStats, "batches" | "advice">;
}

/**
 * Logs `stats().advice` of each model, at most once a minute and only while batches run. Advice that differs from an earlier line
 * only in its figures is not logged again.
 */
export class AdviceLog {
  readonly #timer: NodeJS.Timeout;

  constructor(log: Pick<FastifyBaseLogger, "info">, models: () => readonly Advised[]) {
    const before = new WeakMap<Advised, { readonly batches: number; readonly text: string }>();
    this.#timer = setInterval(() => {
      for (const model of models()) {
        const { batches, advice } = model.stats();
        const last = before.get(model) ?? { batches: 0, text: "" };
        if (batches === last.batches) continue;
        const text = advice.join(" ").replaceAll(/[\d.]+/g, "");
        if (text !== "" && text !== last.text) log.info({ model: model.name, advice }, "advice");
        before.set(model, { batches, text });
      }
    }, everyMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
