import type { SimulationResult } from "sheaf/tuning";
import { figures, percent, shownMs } from "../../shared/terminal.ts";
import type { WhatIfPoint } from "./what-if.ts";

const latencies = ["mean", "p50", "p95", "p99"] as const;

/** A row for each point; columns of clients, surges and workers only where there are some. */
export function tableOf(points: readonly WhatIfPoint[]): string[][] {
  const hasClients = points.some(({ result }) => result.goodput !== undefined);
  const hasSurge = points.some(({ result }) => result.goodput?.recoveryMs !== undefined);
  const isScaled = points.some(({ scaledBy }) => scaledBy !== undefined);
  return [
    [
      "load",
      "policy",
      ...(isScaled ? ["scaled by", "worker hours", "most workers"] : []),
      "calls/s",
      ...latencies.map((name) => `${name} ms`),
      "mean batch",
      "busy",
      "lost",
      ...(hasClients ? ["attempts"] : []),
      ...(hasSurge ? ["back after"] : []),
    ],
    ...points.map(({ policy, label, scaledBy = "", result }) => {
      const { latencyMs, items } = result;
      const lost = items.timeout + items.rejected + items.error + items.gaveUp;
      const { attemptsPerOperation = 0, recoveryMs = Infinity } = result.goodput ?? {};
      return [
        label,
        policy,
        ...(isScaled ? [scaledBy, ...workersOf(result)] : []),
        figures(result.throughputPerS),
        ...latencies.map((name) => figures(latencyMs[name])),
        figures(result.meanBatchSize),
        percent(result.utilisation),
        percent(lost / (lost + items.ok)),
        ...(hasClients ? [figures(attemptsPerOperation)] : []),
        ...(hasSurge ? [Number.isFinite(recoveryMs) ? shownMs(recoveryMs) : "never"] : []),
      ];
    }),
  ];
}

function workersOf({ workers }: SimulationResult): string[] {
  const { workerSeconds = 0, changes = [] } = workers ?? {};
  return [figures(workerSeconds / 3600), String(Math.max(0, ...changes.map(([, count]) => count)))];
}
