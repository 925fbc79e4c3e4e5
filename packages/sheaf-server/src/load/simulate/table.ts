import type { SimulatedEnds } from "sheaf/internal/tuning";
import { figures, percent, shownMs } from "../../shared/terminal.ts";
import { floodOf, sharersOf, type WhatIfPoint } from "./what-if.ts";

const latencies = ["mean", "p50", "p95", "p99"] as const;

/**
 * A row for each point; columns of tenants, clients and surges only where there are some. With tenants latencies and
 * lost calls are theirs, without the flood's.
 */
export function tableOf(points: readonly WhatIfPoint[]): string[][] {
  const hasClients = points.some(({ result }) => result.goodput !== undefined);
  const hasSurge = points.some(({ result }) => result.goodput?.recoveryMs !== undefined);
  const byTenants = points.some(({ tenantKey }) => tenantKey !== undefined);
  const hasFlood = points.some((point) => floodOf(point) !== undefined);
  return [
    [
      "load",
      "policy",
      ...(byTenants ? ["tenants by"] : []),
      "calls/s",
      ...latencies.map((name) => `${name} ms`),
      "mean batch",
      "busy",
      "lost",
      ...(hasFlood ? ["flood's p99 ms", "its lost"] : []),
      ...(hasClients ? ["attempts"] : []),
      ...(hasSurge ? ["back after"] : []),
    ],
    ...points.map((point) => {
      const { policy, tenantKey = "", label, result } = point;
      const { latencyMs, items } = sharersOf(point);
      const flood = floodOf(point);
      const { attemptsPerOperation = 0, recoveryMs = Infinity } = result.goodput ?? {};
      return [
        label,
        policy,
        ...(byTenants ? [tenantKey] : []),
        figures(result.throughputPerS),
        ...latencies.map((name) => figures(latencyMs[name])),
        figures(result.meanBatchSize),
        percent(result.utilisation),
        percent(lostOf(items)),
        ...(flood === undefined ? [] : [figures(flood.latencyMs.p99), percent(lostOf(flood.items))]),
        ...(hasClients ? [figures(attemptsPerOperation)] : []),
        ...(hasSurge ? [Number.isFinite(recoveryMs) ? shownMs(recoveryMs) : "never"] : []),
      ];
    }),
  ];
}

/** Share of the calls that got no result, 0…1. */
function lostOf({ ok, timeout, rejected, error, gaveUp }: SimulatedEnds): number {
  const lost = timeout + rejected + error + gaveUp;
  return lost / Math.max(1, lost + ok);
}
