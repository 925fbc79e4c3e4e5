import { adaptive, auto, fixedWindow, greedy, type Policy } from "sheaf";

export interface StrategySettings {
  readonly latencyBudgetMs?: number | undefined;
}

interface Strategy {
  /** A new policy: each batcher has its own. */
  policy(settings: StrategySettings): Policy;
  /** The flags of `sheaf serve` that `sheaf bench --compare` sets with it. */
  readonly compareWith?: readonly string[];
}

/** Which items go first under standing overload: fifo keeps its name's promise. */
export const overloadOrderOf = (strategy: StrategyName): "newest" | "arrival" =>
  strategy === "fifo" ? "arrival" : "newest";

export type StrategyName = "greedy" | "fifo" | "adaptive" | "auto";

/** A policy in this table can be served and compared. */
export const strategies: Readonly<Record<StrategyName, Strategy>> = {
  greedy: { policy: () => greedy() },
  fifo: { policy: () => fixedWindow(), compareWith: ["--max-batch-size", "32", "--max-wait-ms", "50"] },
  adaptive: { policy: () => adaptive() },
  auto: { policy: ({ latencyBudgetMs }) => auto({ latencyBudgetMs }) },
};

export const strategyNames = Object.keys(strategies) as readonly StrategyName[];
