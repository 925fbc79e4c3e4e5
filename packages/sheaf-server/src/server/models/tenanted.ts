import type { BatcherOptions, Executor } from "sheaf";
import { wrapExecutor } from "sheaf/executors";
import { roleOf } from "../../settings/role.ts";
import type { Settings } from "../../settings/settings.ts";
import { hasTenants } from "../../tenants/callers.ts";
import { whileRunning, type Caller } from "../../tenants/caller.ts";
import type { Tenant } from "../../tenants/tenants.ts";

/** An item as it waits in a batcher whose tenants take turns. */
export class Tenanted {
  readonly item: unknown;
  readonly caller: Caller | undefined;

  constructor(item: unknown, caller: Caller | undefined) {
    this.item = item;
    this.caller = caller;
  }
}

/** Whether the batcher of a model that runs here takes items with their tenants. A worker of a fleet gets items without them. */
export const isTenanted = (settings: Settings): boolean => roleOf(settings) === "alone" && hasTenants(settings);

type Keys = Pick<BatcherOptions<unknown>, "weigh" | "groupKey" | "dedupeKey" | "fairKey" | "shareOf">;

/** The key functions of items. */
interface ItemKeys extends Pick<Keys, "weigh" | "groupKey"> {
  /** Equal items of one API key share a run. */
  readonly dedupeKey: ((item: unknown, apiKey: object | undefined) => unknown) | undefined;
}

/** The key functions of items, for items with their tenants. */
export function tenantedKeys({ weigh, groupKey, dedupeKey }: ItemKeys): Keys {
  const of = <T>(key: ((item: unknown) => T) | undefined): ((item: unknown) => T) | undefined =>
    key && ((held) => key((held as Tenanted).item));
  return {
    weigh: of(weigh),
    groupKey: of(groupKey),
    dedupeKey: dedupeKey && ((held) => dedupeKey((held as Tenanted).item, (held as Tenanted).caller?.key)),
    ...turnKeys,
  };
}

/** Whose turn it is, and for how much. */
export const turnKeys: Required<Pick<Keys, "fairKey" | "shareOf">> = {
  fairKey: (held) => (held as Tenanted).caller?.tenant,
  shareOf: (tenant) => (tenant as Tenant | undefined)?.share ?? 1,
};

/** An executor of items, for items with their tenants. */
export const tenantedExecutor = (inner: Executor<unknown, unknown>): Executor<unknown, unknown> =>
  wrapExecutor(inner, {
    run(all, handle) {
      const held = all as Tenanted[];
      const items = held.map(({ item }) => item);
      return whileRunning(held.map(({ caller }) => caller), () => inner.run(items, handle)); // prettier-ignore
    },
  });
