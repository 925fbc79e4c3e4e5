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
  /** The blocks of the calls that are played, in this order. */
  readonly part: Part;
  /** In place of the moments of the calls. */
  readonly closed: ClosedLoop | undefined;
  readonly cost: RunCost;
  readonly settings: RecordedSettings;
  readonly seed: number;
}

/** Some of `blocks` of equal length. */
export interface Part {
  readonly blocks: number;
  readonly kept: readonly number[];
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
  /** Runs in flight as a run begins, itself included. */
  readonly meanInFlight: number;
  /** 1 where more calls came than could be answered: then the answers a second count, not the latency. */
  readonly overload: number;
}

/** Calls without a result, above which it is overload. */
export const overloadRate = 0.01;
/** Runs whose times stay together when they are drawn from the record. */
const runsTogether = 100;
/** Share of the time of an open load that is needed after it, beside the longest wait and run, for what has queued up. */
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
export async function play({ calls, part, closed, cost, settings, seed }: Play): Promise<Played> {
  const { policy, concurrency, hasTenants, prefetch: _, latencyBudgetMs: __, ...options } = settings;
  const { count, atMs, lane, weight, tenant, timeoutMs } = blocksOf(calls, part);
  const at = costAt(cost.line, cost.byWeight);
  const { contention, ratios } = cost;
  const random = new Random(seed ^ 0x51ed270b);
  let [runs, from, inFlightSum, longestMs] = [0, 0, 0, 0];
  const hasWeights = cost.byWeight !== undefined || settings.maxBatchWeight !== undefined;
  const result = await simulate({
    ...options,
    policy: policies[policy]!(settings),
    concurrency,
    arrivals:
      closed === undefined
        ? { pattern: "trace", atMs, lanes: lane, timeoutsMs: timeoutMs }
        : { pattern: "closed", ...closed },
    items: count,
    priorities: closed === undefined ? {} : { immediate: shareOf(lane, 0), bulk: shareOf(lane, 2) },
    ...(hasWeights
      ? { weights: { pattern: "trace", weights: weight } }
      : { batchWeight: undefined, maxBatchWeight: undefined }),
    ...(hasTenants === true && { fairKey: (item: number) => tenant[item] }),
    cost: (size, _nowMs, { sum, heaviest }, inFlight) => {
      if (runs % runsTogether === 0) from = Math.floor(random.uniform() * ratios.length);
      inFlightSum += inFlight;
      const runMs =
        at({ size, weight: hasWeights ? sum : size, heaviest }) *
        (1 + contention * (inFlight - 1)) *
        ratios[(from + (runs++ % runsTogether)) % ratios.length]!;
      longestMs = Math.max(longestMs, runMs);
      return runMs;
    },
    seed,
  });
  const { latencyMs, items, throughputPerS, meanBatchSize, durationMs } = result;
  const spanMs = atMs.at(-1)! - atMs[0]!;
  const lostRate = 1 - items.ok / count;
  const isLate = durationMs > (1 + backlogRate) * spanMs + 2 * longestMs + (options.maxWaitMs ?? 0);
  const overload = lostRate > overloadRate || (closed === undefined && isLate) ? 1 : 0;
  const { p50, p95, p99, mean } = latencyMs;
  const meanInFlight = inFlightSum / runs;
  return { p50, p95, p99, mean, perS: throughputPerS, lostRate, meanBatchSize, meanInFlight, overload };
}

const shareOf = (lanes: Uint8Array, lane: number): number =>
  lanes.reduce((count, one) => count + (one === lane ? 1 : 0), 0) / lanes.length;

/** The kept blocks, one after the other without the time between them. */
export function blocksOf(calls: RecordedCalls, { blocks, kept }: Part): RecordedCalls {
  const lengthMs = (calls.atMs.at(-1)! + 1) / blocks;
  const ends = endsOf(calls.atMs, blocks);
  const count = kept.reduce((sum, block) => sum + ends[block]! - (ends[block - 1] ?? 0), 0);
  const columns = Object.entries(calls).map(([name, column]) => {
    if (typeof column === "number") return [name, count];
    const made = new (column.constructor as Float64ArrayConstructor)(count);
    let next = 0;
    kept.forEach((block, i) => {
      const shiftMs = name === "atMs" || name === "endMs" ? lengthMs * (i - block) : 0;
      for (let place = ends[block - 1] ?? 0; place < ends[block]!; place++) made[next++] = column[place]! + shiftMs;
    });
    return [name, made];
  });
  return Object.fromEntries(columns) as RecordedCalls;
}

/** The place after the last call of each block. */
export function endsOf(atMs: Float64Array, blocks: number): number[] {
  const ends = new Array<number>(blocks).fill(0);
  for (const ms of atMs) ends[Math.floor((ms / (atMs.at(-1)! + 1)) * blocks)]!++;
  for (let block = 1; block < blocks; block++) ends[block]! += ends[block - 1]!;
  return ends;
}
