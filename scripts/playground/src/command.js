import { itemsOf, maxQueueSize, policies } from "./model.js";

/** @import { Settings } from "./settings.js" */

/** The words of the command line that simulates the same: `npx sheaf` and these. @returns {string[]} */
export function argumentsOf(/** @type {Settings} */ settings) {
  const { fixed, perItem, size, slots, window, pattern, rate, factor, callers } = settings;
  const { lengths, median, spread, perLength, padded, tenants, flood, fair, patience, attempts, obey, seed } = settings;
  const words = ["simulate", "--fixed", fixed, "--per-item", perItem];
  if (lengths) words.push("--lengths", `${median},${median * spread}`, "--per-length", perLength);
  if (lengths && padded) words.push("--padded");
  words.push("--arrivals", pattern);
  if (pattern === "closed") words.push("--callers", callers);
  else words.push("--rate", rate);
  if (pattern === "surge") words.push("--surge-factor", factor);
  words.push("--slots", slots, "--max-batch-size", size, "--max-wait", `${window}ms`);
  if (tenants > 0 && pattern !== "closed") {
    words.push("--tenants", tenants, "--tenant-key", fair ? "fairKey" : "none");
    if (flood > 0) words.push("--flood", flood);
  }
  if (patience > 0) {
    words.push("--patience", `${patience}ms`, "--attempts", attempts);
    if (obey) words.push("--obey-retry-after");
  }
  words.push("--policy", policies.join(","), "--items", itemsOf(settings), "--seed", seed);
  return words.map(String);
}

/** The code of a batcher with the default policy and these limits. @returns {string} */
export function codeOf(/** @type {Settings} */ settings) {
  const { size, slots, window, lengths, padded, tenants, fair, pattern, patience } = settings;
  const options = [
    `maxBatchSize: ${size}`,
    `maxWaitMs: ${window}`,
    `maxQueueSize: ${maxQueueSize}`,
    `concurrency: ${slots}`,
    ...(lengths ? ["weigh: (item) => item.tokens"] : []),
    ...(lengths && padded ? ['batchWeight: "padded"'] : []),
    ...(tenants > 0 && fair && pattern !== "closed" ? ["fairKey: (item) => item.tenant"] : []),
  ];
  return `import { createBatcher } from "sheaf";

const infer = createBatcher(runBatch, {
${options.map((option) => `  ${option},\n`).join("")}});

const result = await infer(item${patience > 0 ? `, { signal: AbortSignal.timeout(${patience}) }` : ""}); // from many callers`;
}
