import { strategyNames, strategies, type StrategyName } from "../shared/strategies.ts";

export type ConfigurationName = "unbatched" | StrategyName;

/** Configurations that `--compare` can set side by side, as flags of `sheaf serve`. */
export const configurations = Object.fromEntries([
  ["unbatched", ["--max-batch-size", "1", "--scheduler-strategy", "greedy"]],
  ...strategyNames.map((name) => [name, ["--scheduler-strategy", name, ...(strategies[name].compareWith ?? [])]]),
]) as Readonly<Record<ConfigurationName, readonly string[]>>;

export const configurationNames = Object.keys(configurations) as readonly ConfigurationName[];
