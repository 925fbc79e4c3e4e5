import { adaptive } from "../../policies/adaptive.ts";
import { auto } from "../../policies/auto/index.ts";
import { fixedWindow } from "../../policies/fixed-window.ts";
import { greedy } from "../../policies/greedy.ts";
import type { Policy } from "../../policies/policy.ts";
import type { RecordedSettings } from "../../shared/recorded-settings.ts";
import type { RecordedCalls } from "../record/recording.ts";
import { simulate } from "../simulate.ts";
import { Random } from "../traffic/random.ts";
import type { ClosedLoop } from "./closed-loop.ts";
import { costAt, type RunCost } from "./run-cost.ts";

/** What is played: all of it data, so that another thread can. */
export interface Play {
  readonly calls: RecordedCalls;
  /** In place of the moments of the calls. */
  readonly closed: ClosedLoop | undefined;
  readonly cost: RunCost;
  readonly settings: RecordedSettings;
  readonly seed: number;
}

export interface Played {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly mean: number;
  readonly perS: number;
  /** Share of the calls without a result, 0 … 1. */
  readonly lostRate: number;
  readonly meanBatchSize: number;
  /** 1 where more calls came than could be answered: then the answers a second count, not the latency. */
  readonly overload: number;
}

/** Calls without a result, above which it is overload. */
export const overloadRate = 0.01;
/** Share of the time of an open load that is needed after it, for what has queued up. */
const backlogRate = 0.02;

const policies: Readonly<Record<string, (settings: RecordedSettings) => Policy>> = {
  auto: ({ latencyBudgetMs }) => auto({ latencyBudgetMs }),
  greedy: () => greedy(),
  adaptive: () => adaptive(),
  "fixed-window": () => fixedWindow(),
  "fixed-window-size": () => fixedWindow({ trigger: "size" }),
  "fixed-window-time": () => fixedWindow({ trigger: "time" }),
};

/** Whether batches of this policy can be played. */
export const isKnownPolicy = (name: string): boolean => Object.hasOwn(policies, name);

/** Plays the calls with the real batcher on a virtual clock. */
export async function play({ calls, closed, cost, settings, seed }: Play): Promise<Played> {
  const { policy, concurrency, hasTenants, prefetch: _, latencyBudgetMs: __, ...options } = settings;
  const { count, weight, tenant, timeoutMs } = calls;
  const at = costAt(cost.line, cost.byWeight);
  const { contention = 0, ratios } = cost;
  let next = Math.floor(new Random(seed ^ 0x51ed270b).uniform() * ratios.length);
  const hasWeights = cost.byWeight !== undefined || settings.maxBatchWeight !== undefined;
  const result = await simulate({
    ...options,
    policy: policies[policy]!(settings),
    concurrency,
    arrivals:
      closed === undefined
        ? { pattern: "trace", atMs: calls.atMs, lanes: calls.lane, timeoutsMs: timeoutMs }
        : { pattern: "closed", ...closed },
    items: count,
    ...(hasWeights
      ? { weights: { pattern: "trace", weights: weight } }
      : { batchWeight: undefined, maxBatchWeight: undefined }),
    ...(hasTenants === true && { fairKey: (item: number) => tenant[item] }),
    cost: (size, _nowMs, { sum, heaviest }, inFlight) =>
      at({ size, weight: hasWeights ? sum : size, heaviest }) *
      (1 + contention * (inFlight - 1)) *
      ratios[next++ % ratios.length]!,
    seed,
  });
  const { latencyMs, items, throughputPerS, meanBatchSize, durationMs } = result;
  const spanMs = calls.atMs.at(-1)! - calls.atMs[0]!;
  const lostRate = 1 - items.ok / count;
  const overload = lostRate > overloadRate || (closed === undefined && durationMs > (1 + backlogRate) * spanMs) ? 1 : 0;
  const { p50, p95, p99, mean } = latencyMs;
  return { p50, p95, p99, mean, perS: throughputPerS, lostRate, meanBatchSize, overload };
}

/** The calls of some blocks of equal length, one after the other without the time between them. */
export function blocksOf(calls: RecordedCalls, blocks: number, isIn: (block: number) => boolean): RecordedCalls {
  const lengthMs = (calls.atMs.at(-1)! + 1) / blocks;
  const places = new Uint32Array(calls.count);
  const atMs = new Float64Array(calls.count);
  let count = 0;
  let kept = 0;
  const startsMs = Array.from({ length: blocks }, (_, block) => (isIn(block) ? lengthMs * kept++ : NaN));
  for (let place = 0; place < calls.count; place++) {
    const block = Math.floor(calls.atMs[place]! / lengthMs);
    if (!isIn(block)) continue;
    places[count] = place;
    atMs[count++] = calls.atMs[place]! - block * lengthMs + startsMs[block]!;
  }
  const pick = <T extends Float64Array | Uint8Array | Int32Array>(column: T, made: T): T => {
    for (let i = 0; i < count; i++) made[i] = column[places[i]!]!;
    return made;
  };
  return {
    count,
    atMs: atMs.slice(0, count),
    endMs: pick(calls.endMs, new Float64Array(count)),
    lane: pick(calls.lane, new Uint8Array(count)),
    weight: pick(calls.weight, new Float64Array(count)),
    tenant: pick(calls.tenant, new Int32Array(count)),
    timeoutMs: pick(calls.timeoutMs, new Float64Array(count)),
  };
}
