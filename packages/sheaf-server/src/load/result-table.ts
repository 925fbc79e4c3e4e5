import type { LoadResult } from "./result.ts";
import { figures, percent } from "./terminal.ts";

/** Results as rows of text, the head first; terminal and report show the same. Latencies in milliseconds. */
export function resultTable(results: readonly LoadResult[]): string[][] {
  const sizes = results.some(({ batches }) => batches !== undefined);
  const head = ["configuration", "pattern", "offered/s", "achieved/s", "success"];
  const quantiles = ["p50 ms", "p95 ms", "p99 ms", "p99.9 ms"];
  return [
    [...head, ...quantiles, ...(sizes ? ["mean batch"] : []), "lag p99 ms"],
    ...results.map(({ latencyMs, sendLagMs, ...result }) => [
      result.configuration,
      result.pattern,
      figures(result.offeredPerS),
      figures(result.achievedPerS),
      percent(result.successRate),
      ...[latencyMs.p50, latencyMs.p95, latencyMs.p99, latencyMs.p999].map(figures),
      ...(sizes ? [meanBatch(result)] : []),
      figures(sendLagMs.p99),
    ]),
  ];
}

const meanBatch = ({ batches }: { batches?: LoadResult["batches"] }): string =>
  batches === undefined || batches.meanSize === 0 ? "–" : figures(batches.meanSize);

/** What a reader must know beyond the table: other outcomes, a saturated generator, waits for a connection. */
export function resultNotes(results: readonly LoadResult[]): string[] {
  return results.flatMap((result) => {
    const label = `${result.configuration}, ${result.pattern}`;
    const others = Object.entries(result.statuses).filter(([status]) => !/^2\d\d$/.test(status));
    const notes: string[] = [];
    if (others.length > 0) {
      const counts = others.map(([status, count]) => `${figures(count)} × ${status}`).join(", ");
      const body = result.lastErrorBody === undefined ? "" : `; last reply: ${oneLine(result.lastErrorBody)}`;
      notes.push(`${label}: ${counts}${body}`);
    }
    if (result.saturated !== undefined) notes.push(`${label}: ${result.saturated}`);
    if (result.waitedForConnection > 0) {
      const waited = figures(result.waitedForConnection);
      notes.push(
        `${label}: ${waited} requests waited for one of the generator's connections; the wait is in their latency.`,
      );
    }
    return notes;
  });
}

export const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
};
