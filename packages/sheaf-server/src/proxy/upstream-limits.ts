import type { BatcherStats } from "sheaf";
import type { MetricFamily } from "sheaf/internal/metrics";
import type { LimitRow } from "../dashboard/observed.ts";
import { counter, gauge } from "../observe/family.ts";
import { sumOfStats } from "../shared/stats-sum.ts";
import type { Tenant } from "../tenants/tenants.ts";

/** Of so many limits the page has rows and the metrics series: the most used. */
const mostShown = 20;
/** Of so many tenants a row says that their calls wait. */
const mostTenants = 3;

const kinds = { runs: "requests", weight: "tokens", input: "input tokens", output: "output tokens" } as const;
const isKind = (kind: string): kind is keyof typeof kinds => kind in kinds;

/** A row for each limit of each model, of all keys that have used it together. */
export function limitRows(models: readonly { readonly model: string; readonly stats: BatcherStats }[]): LimitRow[] {
  const byModel = new Map<string, BatcherStats[]>();
  for (const { model, stats } of models) byModel.set(model, [...(byModel.get(model) ?? []), stats]);
  return [...byModel]
    .map(([model, parts]) => ({ ...sumOfStats(model, parts), waiting: waitingOf(parts) }))
    .toSorted((a, b) => (b.rateLimit?.weight.used ?? 0) - (a.rateLimit?.weight.used ?? 0))
    .slice(0, mostShown)
    .flatMap(({ name: model, rateLimit: limit, lanes, queued, waiting: tenants }) => {
      if (limit === null) return [];
      const waiting = { live: lanes?.live.queued ?? queued, bulk: lanes?.bulk.queued ?? 0 };
      const known = Object.keys(kinds).filter(isKind).filter((kind) => (limit[kind]?.perMinute ?? null) !== null); // prettier-ignore
      // One whose limits are not known yet is shown too.
      return (known.length === 0 ? (["weight"] as const) : known).map((kind): LimitRow => {
        const { perMinute, left, used } = limit[kind]!;
        return { model, kind: kinds[kind], perMinute, left, used, refused: limit.refused, waiting, tenants };
      });
    });
}

/** The tenants of whom most items wait. */
function waitingOf(parts: readonly BatcherStats[]): LimitRow["tenants"] {
  return parts
    .flatMap(({ tenants }) => tenants?.busiest ?? [])
    .filter(({ queued }) => queued > 0)
    .toSorted((a, b) => b.queued - a.queued)
    .slice(0, mostTenants)
    .map(({ key, queued }) => ({ name: (key as Tenant | undefined)?.name ?? "", waiting: queued }));
}

/** The same as metrics. */
export function limitFamilies(rows: readonly LimitRow[]): MetricFamily[] {
  const of = (value: (row: LimitRow) => number | null): MetricFamily["samples"] =>
    rows.flatMap((row) => {
      const amount = value(row);
      return amount === null ? [] : [{ labels: { model: row.model, kind: row.kind }, value: amount }];
    });
  const each = rows.filter(({ model }, index) => rows.findIndex((row) => row.model === model) === index);
  return [
    gauge(
      "sheaf_upstream_limit_per_minute",
      "Limit of the upstream, by model and kind.",
      of((row) => row.perMinute),
    ),
    gauge(
      "sheaf_upstream_limit_left",
      "What is left of it now.",
      of((row) => row.left),
    ),
    counter(
      "sheaf_upstream_limit_used_total",
      "What was used of it.",
      of((row) => row.used),
    ),
    counter("sheaf_upstream_refusals_total", "Requests that the upstream refused for their rate, by model.", each.map(({ model, refused }) => ({ labels: { model }, value: refused }))), // prettier-ignore
    gauge("sheaf_upstream_waiting_items", "Items that wait for the limit, by model and lane.", each.flatMap(({ model, waiting }) => Object.entries(waiting).map(([lane, value]) => ({ labels: { model, lane }, value })))), // prettier-ignore
  ];
}
