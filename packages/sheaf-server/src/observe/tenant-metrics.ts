import type { MetricFamily } from "sheaf/internal/metrics";
import type { Callers } from "../tenants/callers.ts";
import { counter, gauge } from "./family.ts";

/** Items of the busiest tenants, and of all others together: the number of series is bounded. */
export function tenantFamilies({ figures }: Pick<Callers, "figures">): MetricFamily[] {
  if (figures === undefined) return [];
  const all = [...figures.busiest, figures.others];
  return [
    counter(
      "sheaf_tenant_items_total",
      "Items by tenant and outcome; all but the busiest tenants are one.",
      all.flatMap(({ name: tenant, items }) =>
        Object.entries(items).map(([outcome, value]) => ({ labels: { tenant, outcome }, value })),
      ),
    ),
    gauge(
      "sheaf_tenant_in_flight_items",
      "Items of a tenant that wait or run.",
      all.map(({ name: tenant, inFlight }) => ({ labels: { tenant }, value: inFlight })),
    ),
  ];
}
