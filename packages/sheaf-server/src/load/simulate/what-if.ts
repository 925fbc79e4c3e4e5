import { simulate, type SimulationOptions, type SimulationResult } from "sheaf/tuning";
import type {
  Arrivals,
  Retries,
  SimulatedCost,
  SimulatedTenantFigures,
  SimulatedTenants,
  Weights,
} from "sheaf/internal/tuning";
import { overloadOrderOf, strategies } from "../../shared/strategies.ts";
import type { ConfigurationName } from "./configurations.ts";

export interface WhatIf {
  readonly cost: SimulatedCost;
  readonly slots: number;
  readonly maxBatchSize: number;
  readonly maxWaitMs: number;
  readonly maxQueueSize: number;
  readonly timeoutMs?: number | undefined;
  readonly latencyBudgetMs?: number | undefined;
  /** Lengths of the items; the cost then counts them. */
  readonly weights?: Weights | undefined;
  readonly maxBatchWeight?: number | undefined;
  readonly retries?: Retries | undefined;
  readonly tenants?: WhatIfTenants | undefined;
  /** Undefined: all of a trace. */
  readonly items: number | undefined;
  readonly seed: number;
}

/** Callers who share a load, each with an equal part of it, and one who floods. */
export interface WhatIfTenants {
  readonly count: number;
  /** Rate of one more caller; undefined without. */
  readonly floodPerS: number | undefined;
  readonly key: TenantKey;
}

export const tenantKeys = ["none", "fairKey", "groupKey"] as const;
export type TenantKey = (typeof tenantKeys)[number];

export interface WhatIfPoint {
  readonly policy: ConfigurationName;
  readonly tenantKey?: TenantKey | undefined;
  /** Rate, callers, or the trace, for people. */
  readonly label: string;
  /** Position on the axis: calls per second, or callers. */
  readonly load: number;
  readonly result: SimulationResult;
}

export const lineOf = ({ policy, tenantKey }: WhatIfPoint): string =>
  [policy, tenantKey].filter((part) => part !== undefined).join(", ");

/** The figures of all calls; where tenants share the load, of theirs without the flood. */
export const sharersOf = ({ result }: WhatIfPoint): Pick<SimulatedTenantFigures, "items" | "latencyMs"> =>
  result.tenants?.["tenants"] ?? result;

/** The figures of the calls that flood; undefined without. */
export const floodOf = ({ result }: WhatIfPoint): SimulatedTenantFigures | undefined => result.tenants?.["flood"];

/** Runs the real batcher, as `sheaf serve` would set it up for this configuration, on a virtual clock. */
export function simulatePolicy(
  policy: ConfigurationName,
  arrivals: Arrivals,
  whatIf: WhatIf,
): Promise<SimulationResult> {
  const { cost, slots, maxBatchSize, maxWaitMs, maxQueueSize, timeoutMs, items, seed } = whatIf;
  const { weights, maxBatchWeight, retries, tenants } = whatIf;
  const shared: SimulationOptions = {
    ...(tenants === undefined ? { arrivals } : { tenants: kindsOf(arrivals, tenants), tenantKey: tenants.key }),
    cost,
    concurrency: slots,
    maxBatchSize,
    maxWaitMs,
    maxQueueSize,
    timeoutMs,
    weights,
    ...(weights !== undefined && { maxBatchWeight, batchWeight: weighedAs(cost) }),
    retries,
    items: arrivals.pattern === "trace" ? undefined : items,
    seed,
  };
  return simulate({ ...shared, ...ofPolicy(policy, whatIf) });
}

/** The callers of a load that comes from tenants. @throws {RangeError} for a load that cannot be divided. */
function kindsOf(arrivals: Arrivals, { count, floodPerS }: WhatIfTenants): SimulatedTenants[] {
  if (!("ratePerS" in arrivals))
    throw new RangeError(`tenants need arrivals with a rate, got pattern "${arrivals.pattern}"`);
  const each = { ...arrivals, ratePerS: arrivals.ratePerS / count };
  const sharers: SimulatedTenants = { name: "tenants", count, arrivals: each };
  if (floodPerS === undefined) return [sharers];
  return [sharers, { name: "flood", arrivals: { ...arrivals, ratePerS: floodPerS } }];
}

const weighedAs = (cost: SimulatedCost): "sum" | "padded" =>
  (typeof cost === "object" && "batchWeight" in cost ? cost.batchWeight : undefined) ?? "sum";

function ofPolicy(policy: ConfigurationName, settings: WhatIf): Partial<SimulationOptions> {
  if (policy === "unbatched") return { policy: strategies.greedy.policy(settings), maxBatchSize: 1 };
  const overloadOrder = overloadOrderOf(policy);
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
    items: Math.max(1000, Math.min(40 * inFlight, 400_000), 8 * inFlight),
    seed: 1,
  };
  // Twice as many callers as fit: no slot ever waits. The cost may be a staircase, so it is measured, not computed.
  const clients = 2 * inFlight;
  const { throughputPerS } = await simulatePolicy("greedy", { pattern: "closed", clients }, whatIf);
  return throughputPerS;
}
