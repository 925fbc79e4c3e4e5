import type { TenantStats, TenantsStats } from "../../contract/stats.ts";

/** So many tenants have figures of their own. */
const mostShown = 20;

interface Counted {
  readonly key: unknown;
  readonly share: number;
  readonly waiting: number;
  readonly taken: number;
  readonly rejected: number;
}

/** The tenants with most items, the first one first, and one sum for all others; `forgotten`: of those that are no longer known. */
export function busiestOf(tenants: Iterable<Counted>, forgotten: TenantStats): TenantsStats {
  const busiest: Counted[] = [];
  const others = { ...forgotten };
  for (const tenant of tenants) {
    const place = busiest.findIndex((other) => itemsOf(other) < itemsOf(tenant));
    busiest.splice(place === -1 ? busiest.length : place, 0, tenant);
    if (busiest.length <= mostShown) continue;
    const { waiting, taken, rejected } = busiest.pop()!;
    others.queued += waiting;
    others.dispatched += taken;
    others.rejected += rejected;
  }
  return {
    busiest: busiest.map(({ key, share, waiting: queued, taken: dispatched, rejected }) => ({
      key,
      share,
      queued,
      dispatched,
      rejected,
    })),
    others,
  };
}

const itemsOf = ({ waiting, taken, rejected }: Counted): number => waiting + taken + rejected;
