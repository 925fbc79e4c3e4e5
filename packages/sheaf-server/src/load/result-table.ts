import type { LoadResult } from "./result.ts";
import { figures, percent, shownMs } from "../shared/terminal.ts";

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

/** Notes below the table: other outcomes, a saturated generator, waits for a connection. */
export function resultNotes(results: readonly LoadResult[]): string[] {
  const notes = results.flatMap((result) => {
    const others = Object.entries(result.statuses).filter(([status]) => !/^2\d\d$/.test(status));
    if (others.length === 0) return [];
    const counts = others.map(([status, count]) => `${figures(count)} × ${status}`).join(", ");
    const body = result.lastErrorBody === undefined ? "" : `; last reply: ${oneLine(result.lastErrorBody)}`;
    return [`${labelOf(result)}: ${counts}${body}`];
  });
  notes.push(...results.flatMap((result) => (result.goodput ? [`${labelOf(result)}: ${goodputNote(result)}`] : [])));
  notes.push(
    ...results.flatMap((result) => (result.tenants ? [`${labelOf(result)}: ${tenantsNote(result.tenants)}`] : [])),
  );
  const waited = results.filter(({ waitedForConnection }) => waitedForConnection > 0);
  if (waited.length > 0) {
    const counts = waited.map((result) => `${figures(result.waitedForConnection)} in ${labelOf(result)}`).join(", ");
    notes.push(`Requests that waited for one of the generator's connections, which is in their latency: ${counts}.`);
  }
  const saturated = results.filter((result) => result.saturated !== undefined);
  if (saturated.length > 0) {
    const lags = saturated.map((result) => `${labelOf(result)} ${figures(result.sendLagMs.p99)} ms`).join(", ");
    notes.push(
      "Generator saturated: it could not keep its schedule within 10 ms at the p99, so these latencies are its own as much " +
        `as the server's (lower the rate or free a core): ${lags}.`,
    );
  }
  return notes;
}

function goodputNote({ goodput, successRate }: LoadResult): string {
  const { attemptsPerOperation, recoveryMs } = goodput!;
  return [
    `${percent(successRate)} of the operations answered`,
    `${figures(attemptsPerOperation)} attempts an operation`,
    ...(recoveryMs === undefined ? [] : [recoveryNote(recoveryMs)]),
  ].join(", ");
}

const tenantsNote = (tenants: NonNullable<LoadResult["tenants"]>): string =>
  Object.entries(tenants)
    .map(
      ([
        name,
        {
          offeredPerS,
          successRate,
          latencyMs: { p50, p99 },
        },
      ]) =>
        `${name} ${figures(offeredPerS)}/s, ${percent(successRate)} answered, p50 ${shownMs(p50)}, p99 ${shownMs(p99)}`,
    )
    .join("; ");

/** How long after a surge 95 % of the goodput before it was back. */
export const recoveryNote = (recoveryMs: number): string =>
  Number.isFinite(recoveryMs) ? `back ${shownMs(recoveryMs)} after the surge` : "not back by the end";

const labelOf = ({ configuration, pattern }: LoadResult): string => `${configuration} ${pattern}`;

export const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
};
