import { strategyNames, strategies, type StrategyName } from "../../shared/strategies.ts";

export type ConfigurationName = "unbatched" | StrategyName;

/** What `--compare` can set side by side: flags of `sheaf serve`. */
export const configurations = Object.fromEntries([
  ["unbatched", ["--max-batch-size", "1", "--scheduler-strategy", "greedy"]],
  ...strategyNames.map((name) => [name, ["--scheduler-strategy", name, ...(strategies[name].compareWith ?? [])]]),
]) as Readonly<Record<ConfigurationName, readonly string[]>>;

export const configurationNames = Object.keys(configurations) as readonly ConfigurationName[];
