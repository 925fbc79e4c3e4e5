export type ConfigurationName = "unbatched" | "greedy" | "fifo" | "adaptive" | "auto";

/** What `--compare` can set side by side: flags of `sheaf serve`. */
export const configurations: Readonly<Record<ConfigurationName, readonly string[]>> = {
  unbatched: ["--max-batch-size", "1", "--scheduler-strategy", "greedy"],
  greedy: ["--scheduler-strategy", "greedy"],
  fifo: ["--scheduler-strategy", "fifo", "--max-batch-size", "32", "--max-wait-ms", "50"],
  adaptive: ["--scheduler-strategy", "adaptive"],
  auto: ["--scheduler-strategy", "auto"],
};

export const configurationNames = Object.keys(configurations) as readonly ConfigurationName[];
