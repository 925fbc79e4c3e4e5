import {
  simulate,
  type Arrivals,
  type Retries,
  type Scaling,
  type SimulatedCost,
  type SimulationOptions,
  type SimulationResult,
  type Weights,
} from "sheaf/tuning";
import { overloadOrderOf, strategies } from "../../shared/strategies.ts";
import type { ConfigurationName } from "./configurations.ts";

/** The part that every simulation of one what-if has in common. */
export interface WhatIf {
  readonly cost: SimulatedCost;
  readonly slots: number;
  readonly maxBatchSize: number;
  readonly maxWaitMs: number;
  readonly maxQueueSize: number;
  readonly timeoutMs?: number | undefined;
  readonly latencyBudgetMs?: number | undefined;
  readonly targetLatencyMs: number;
  /** Coefficient of variation of run times. */
  readonly noise: number;
  /** Lengths of the items; the cost then counts them. */
  readonly weights?: Weights | undefined;
  readonly maxBatchWeight?: number | undefined;
  readonly retries?: Retries | undefined;
  /** Workers that come and go, of `slots` each. */
  readonly scaling?: Scaling | undefined;
  /** Undefined: all of a day or a trace. */
  readonly items: number | undefined;
  readonly seed: number;
}

/** One point: a policy under one load. */
export interface WhatIfPoint {
  readonly policy: ConfigurationName;
  /** The way to scale, where workers come and go. */
  readonly scaledBy?: string | undefined;
  /** Rate, callers, or the trace, for people. */
  readonly label: string;
  /** Position on the axis: calls per second, or callers. */
  readonly load: number;
  readonly result: SimulationResult;
}

/** Runs the real batcher, as `sheaf serve` would set it up for this configuration, on a virtual clock. */
export function simulatePolicy(
  policy: ConfigurationName,
  arrivals: Arrivals,
  whatIf: WhatIf,
): Promise<SimulationResult> {
  const { cost, slots, maxBatchSize, maxWaitMs, maxQueueSize, timeoutMs, noise, items, seed } = whatIf;
  const { weights, maxBatchWeight, retries, scaling } = whatIf;
  const shared: SimulationOptions = {
    arrivals,
    cost,
    ...(scaling === undefined ? { concurrency: slots } : { scaling: { ...scaling, slotsPerWorker: slots } }),
    maxBatchSize,
    maxWaitMs,
    maxQueueSize,
    timeoutMs,
    noise: { cv: noise },
    weights,
    ...(weights !== undefined && { maxBatchWeight, batchWeight: weighedAs(cost) }),
    retries,
    items: arrivals.pattern === "trace" ? undefined : items,
    seed,
  };
  return simulate({ ...shared, ...ofPolicy(policy, whatIf) });
}

const weighedAs = (cost: SimulatedCost): "sum" | "padded" =>
  (typeof cost === "object" && "batchWeight" in cost ? cost.batchWeight : undefined) ?? "sum";

function ofPolicy(policy: ConfigurationName, { targetLatencyMs, latencyBudgetMs }: WhatIf): Partial<SimulationOptions> {
  const settings = { adaptiveTargetLatencyMs: targetLatencyMs, latencyBudgetMs };
  if (policy === "unbatched") return { policy: strategies.greedy.policy(settings), maxBatchSize: 1 };
  const overloadOrder = overloadOrderOf({ schedulerStrategy: policy });
  return { policy: strategies[policy].policy(settings), overloadOrder };
}

/** Calls a second with full batches in every slot. */
export async function capacityPerS({ cost, slots, maxBatchSize, weights, maxBatchWeight }: WhatIf): Promise<number> {
  const inFlight = slots * maxBatchSize;
  const whatIf: WhatIf = {
    cost,
    weights,
    maxBatchWeight,
    slots,
    maxBatchSize,
    maxWaitMs: 1,
    maxQueueSize: 1_000_000,
    targetLatencyMs: 1,
    noise: 0,
    items: Math.max(1000, Math.min(40 * inFlight, 400_000), 8 * inFlight),
    seed: 1,
  };
  // Twice as many callers as fit: no slot ever waits. The cost may be a staircase, so it is measured, not computed.
  const clients = 2 * inFlight;
  const { throughputPerS } = await simulatePolicy("greedy", { pattern: "closed", clients }, whatIf);
  return throughputPerS;
}
