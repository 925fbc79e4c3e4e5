import { createBatcher, type Batcher, type Executor } from "sheaf";
import { executorOf, wrapExecutor } from "sheaf/executors";
import type { ModelCache } from "../../cache/model-cache.ts";
import { tracedBatcher } from "../../observe/tracing.ts";
import { roleOf } from "../../settings/role.ts";
import { defaultBatchSize, runTimeoutOf, type Settings } from "../../settings/settings.ts";
import { hasTenants } from "../../tenants/callers.ts";
import { overloadOrderOf, strategies } from "../../shared/strategies.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { apartExecutor, tenantedExecutor, tenantedKeys, turnKeys, type Tenanted } from "./tenanted.ts";
import { warmUp } from "./warm-up.ts";

/**
 * An item is refused if it would probably take more than this share of its deadline; the rest covers the estimate's error and HTTP.
 */
export const refuseLate = 0.85;

/**
 * The batcher of `Tenanted` items for a model that runs here. With `isApart`, a second one whose runs disturb nobody. `found` gets
 * the items that broke their run.
 */
export function localBatcher(
  definition: ModelDefinition,
  settings: Settings,
  maxBatchSize: number,
  cache: ModelCache | undefined,
  found: (held: Tenanted, error: unknown) => void,
  isApart: boolean = false,
): Batcher<unknown, unknown> {
  const {
    groupKey,
    weigh,
    maxBatchWeight,
    batchWeight = "padded",
  } = definition as ModelDefinition & {
    readonly groupKey?: (item: unknown) => unknown;
    readonly weigh?: (item: unknown) => number;
  };
  const warm = warmExecutor(definition, settings, maxBatchSize);
  const executor = isApart ? apartExecutor(warm) : warm;
  // A result that may be cached may also be shared by equal calls in flight.
  const keys = { groupKey, weigh, dedupeKey: cache?.keyOf };
  const batcher = createBatcher<unknown, unknown>(tenantedExecutor(executor, found), {
    name: definition.name,
    maxBatchSize,
    maxWaitMs: settings.maxWaitMs,
    maxQueueSize: settings.queueMaxSize,
    timeoutMs: settings.requestTimeoutMs,
    // Not in a fleet worker, which takes no more than its slots can run: the gateway refuses late items.
    refuseLate: roleOf(settings) === "alone" ? refuseLate : undefined,
    runTimeoutMs: runTimeoutOf(settings),
    onBatchError: definition.onBatchError ?? "bisect",
    policy: strategies[settings.schedulerStrategy].policy(settings),
    overloadOrder: overloadOrderOf(settings.schedulerStrategy),
    ...tenantedKeys(keys),
    // A fleet worker gets items without their tenants.
    ...(roleOf(settings) === "alone" && hasTenants(settings) ? turnKeys : {}),
    batchWeight: weigh && batchWeight,
    maxBatchWeight: weigh && maxBatchWeight,
    dedupe: cache && "running",
  });
  return tracedBatcher(batcher);
}

/** The definition's executor, which is ready once it is warm. */
function warmExecutor(
  { run, warmUpItem, learnWeight, batchWeight }: ModelDefinition,
  { warmupBatches: batches }: Settings,
  maxBatchSize: number,
): Executor<unknown, unknown> {
  const inner = (typeof run === "function" ? executorOf(run, 1) : run) as Executor<unknown, unknown>;
  return wrapExecutor(inner, {
    run:
      learnWeight === undefined
        ? (items, handle) => inner.run(items, handle)
        : async (items, handle) => {
            const results = await inner.run(items, handle);
            for (const [index, item] of items.entries()) {
              const result = results[index];
              if (result !== undefined && !(result instanceof Error)) learnWeight(item, result);
            }
            return results;
          },
    ready: async () => {
      const runs = await inner.ready();
      if (warmUpItem === undefined) return runs;
      // Larger batches gain nothing if the items run apart.
      const most = batchWeight === "apart" ? Math.min(maxBatchSize, defaultBatchSize) : maxBatchSize;
      return warmUp(inner, warmUpItem, { batches, maxBatchSize: most });
    },
  });
}
