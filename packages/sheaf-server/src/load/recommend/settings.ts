import type { RecordAdvice } from "sheaf/internal/tuning";
import type { StrategyName } from "../../shared/strategies.ts";

type Recorded = RecordAdvice["present"]["settings"];

/** By the name of a policy in a record. */
const strategyOf: Readonly<Record<string, StrategyName>> = { "fixed-window": "fifo" };

/** Recorded settings by the names of the server's. */
const names = {
  maxBatchSize: "maxBatchSize",
  maxWaitMs: "maxWaitMs",
  maxQueueSize: "queueMaxSize",
  latencyBudgetMs: "latencyBudgetMs",
  concurrency: "workers",
  policy: "schedulerStrategy",
} as const;

/** The settings of a server that recorded ones stand for; undefined: no value, which removes it from a config file. */
export function serverSettings(recorded: Partial<Recorded>): Record<string, string | number | undefined> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, setting]) => {
      if (!Object.hasOwn(recorded, name)) return [];
      const value = recorded[name as keyof typeof names];
      return [[setting, typeof value === "string" ? (strategyOf[value] ?? value) : value]];
    }),
  );
}
