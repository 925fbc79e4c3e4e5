import { createBatcher, type BatcherStats } from "sheaf";

type Distribution = BatcherStats["runMs"];
type RateLimitStats = NonNullable<BatcherStats["rateLimit"]>;
type RateLimitFigures = RateLimitStats["runs"];
type LanesStats = NonNullable<BatcherStats["lanes"]>;
type SlotsNeeded = NonNullable<BatcherStats["slotsNeeded"]>;

const none = createBatcher(() => []).stats();

export const emptyStats = (name: string): BatcherStats => ({ ...none, name });

type Read = (stats: BatcherStats) => number;

const sumIn =
  (parts: readonly BatcherStats[]) =>
  (of: Read): number =>
    parts.reduce((total, part) => total + of(part), 0);

type Counts = "queued" | "inFlight" | "items" | "batches" | "bisectRuns" | "abandonedRuns" | "hungRuns" | "reasons";

export function sumOfCounts(parts: readonly BatcherStats[]): Pick<BatcherStats, Counts> {
  const sum = sumIn(parts);
  return {
    queued: sum((part) => part.queued),
    inFlight: sum((part) => part.inFlight),
    items: countsBy(none.items, (outcome) => sum(({ items }) => items[outcome])),
    batches: sum((part) => part.batches),
    bisectRuns: sum((part) => part.bisectRuns),
    abandonedRuns: sum((part) => part.abandonedRuns),
    hungRuns: sum((part) => part.hungRuns),
    reasons: countsBy(none.reasons, (reason) => sum(({ reasons }) => reasons[reason])),
  };
}

/**
 * The statistics of several batchers as those of one: counts add up, means are weighted by batches, distributions are those
 * of the slowest, of each lane too, cost model, verdict and the limit believed are those of the busiest, an overload is the longest, and slots needed
 * add up.
 */
export function sumOfStats(name: string, parts: readonly BatcherStats[]): BatcherStats {
  const sum = sumIn(parts);
  const counts = sumOfCounts(parts);
  const mean = (of: Read): number => sum((part) => of(part) * part.batches) / counts.batches || 0;
  const [first = emptyStats(name), ...others] = parts;
  const busiest = others.reduce((most, part) => (part.batches > most.batches ? part : most), first);
  const overloadedMs = ({ overload }: BatcherStats): number => overload?.forMs ?? -1;
  const longest = others.reduce((most, part) => (overloadedMs(part) > overloadedMs(most) ? part : most), first);
  return {
    name,
    ...counts,
    meanBatchSize: mean((part) => part.meanBatchSize),
    fillRate: mean((part) => part.fillRate),
    queueWaitMs: slowest(parts.map((part) => part.queueWaitMs)),
    runMs: slowest(parts.map((part) => part.runMs)),
    latencyMs: slowest(parts.map((part) => part.latencyMs)),
    costModel: busiest.costModel,
    verdict: busiest.verdict,
    overload: longest.overload,
    pause: parts.map(({ pause }) => pause).find((pause) => pause !== null) ?? null,
    concurrency: busiest.concurrency && {
      ...busiest.concurrency,
      now: sum(({ concurrency }) => concurrency?.now ?? 0),
    },
    rateLimit: sumOfLimits(parts, busiest),
    slotsNeeded: sumOfSlots(parts.flatMap(({ slotsNeeded }) => slotsNeeded ?? [])),
    // The tenants of a server have counts of its own.
    tenants: null,
    lanes: sumOfLanes(parts.flatMap(({ lanes }) => lanes ?? [])),
    cost: null,
    advice: [...new Set(parts.flatMap(({ advice }) => advice))],
  };
}

function sumOfLanes(parts: readonly LanesStats[]): LanesStats | null {
  if (parts.length === 0) return null;
  const sum = (lane: keyof LanesStats): LanesStats["live"] => ({
    queued: parts.reduce((total, part) => total + part[lane].queued, 0),
    dispatched: parts.reduce((total, part) => total + part[lane].dispatched, 0),
    rejected: parts.reduce((total, part) => total + part[lane].rejected, 0),
    latencyMs: slowest(parts.map((part) => part[lane].latencyMs)),
  });
  return { live: sum("live"), bulk: { ...sum("bulk"), oldestMs: Math.max(...parts.map(({ bulk }) => bulk.oldestMs)) } };
}

function sumOfSlots(parts: readonly SlotsNeeded[]): SlotsNeeded | null {
  if (parts.length === 0) return null;
  const sum = (of: (part: SlotsNeeded) => number): number => parts.reduce((total, part) => total + of(part), 0);
  return {
    slots: sum(({ slots }) => slots),
    low: sum(({ low }) => low),
    high: sum(({ high }) => high),
    arrivedPerS: sum(({ arrivedPerS }) => arrivedPerS),
    withinMs: Math.min(...parts.map(({ withinMs }) => withinMs)),
  };
}

function sumOfLimits(parts: readonly BatcherStats[], { rateLimit }: BatcherStats): RateLimitStats | null {
  if (rateLimit === null) return null;
  const limits = parts.flatMap((part) => part.rateLimit ?? []);
  const sum = (of: (limit: RateLimitStats) => number): number => limits.reduce((total, limit) => total + of(limit), 0);
  type Kind = "runs" | "items" | "weight" | "input" | "output";
  const figures = (kind: Kind, { [kind]: ofBusiest = rateLimit.weight } = rateLimit): RateLimitFigures => ({
    ...ofBusiest,
    used: sum((limit) => limit[kind]?.used ?? 0),
  });
  return {
    runs: figures("runs"),
    items: figures("items"),
    weight: figures("weight"),
    ...(rateLimit.output !== undefined && { input: figures("input"), output: figures("output") }),
    share: rateLimit.share,
    refused: sum(({ refused }) => refused),
    pausedMs: sum(({ pausedMs }) => pausedMs),
  };
}

/** Counts under the same keys as `like`. */
export function countsBy<Key extends string>(
  like: Readonly<Record<Key, number>>,
  count: (key: Key) => number,
): Record<Key, number> {
  const keys = Object.keys(like) as Key[];
  return Object.fromEntries(keys.map((key) => [key, count(key)])) as Record<Key, number>;
}

function slowest(parts: readonly Distribution[]): Distribution {
  const most = (of: (part: Distribution) => number): number => Math.max(0, ...parts.map((part) => of(part)));
  return { p50: most((d) => d.p50), p95: most((d) => d.p95), p99: most((d) => d.p99), max: most((d) => d.max) };
}
