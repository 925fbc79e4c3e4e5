import { BatcherError, type BatcherOptions, type Executor } from "sheaf";
import { wrapExecutor } from "sheaf/executors";
import { apartHandle, describe } from "sheaf/internal";
import { whileRunning, type Caller } from "../../tenants/caller.ts";
import type { Tenant } from "../../tenants/tenants.ts";

/** An item as it waits in a batcher. */
export class Tenanted {
  readonly item: unknown;
  readonly caller: Caller | undefined;
  readonly sender: unknown;

  constructor(item: unknown, caller: Caller | undefined, sender: unknown) {
    this.item = item;
    this.caller = caller;
    this.sender = sender;
  }
}

type Keys = Pick<BatcherOptions<unknown>, "weigh" | "groupKey" | "dedupeKey" | "fairKey" | "shareOf">;

interface ItemKeys extends Pick<Keys, "weigh" | "groupKey"> {
  /** Equal items share a run only within one API key. */
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
  };
}

/** Tenants take turns by their shares. */
export const turnKeys: Required<Pick<Keys, "fairKey" | "shareOf">> = {
  fairKey: (held) => (held as Tenanted).caller?.tenant,
  shareOf: (tenant) => (tenant as Tenant | undefined)?.share ?? 1,
};

/** Adapts an executor of plain items to `Tenanted` ones. `found` is called with each item that broke its run. */
export const tenantedExecutor = (
  inner: Executor<unknown, unknown>,
  found: (held: Tenanted, error: unknown) => void,
): Executor<unknown, unknown> =>
  wrapExecutor(inner, {
    run(all, handle) {
      const held = all as Tenanted[];
      const items = held.map(({ item }) => item);
      const callers = held.map(({ caller }) => caller).filter((caller) => caller !== undefined);
      const isShared = held.some(({ sender }) => sender !== held[0]!.sender);
      const run = (): Promise<ArrayLike<unknown>> =>
        isShared ? ofStrangers(() => inner.run(items, handle)) : inner.run(items, handle);
      return callers.length === 0 ? run() : whileRunning(callers, run);
    },
    found(held, error) {
      found(held as Tenanted, error);
      inner.found?.((held as Tenanted).item, error);
    },
  });

/** Marks the error of a run with several senders, as a property, which travels from a fleet worker to the gateways. */
async function ofStrangers<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (thrown instanceof BatcherError) throw thrown;
    const error = thrown instanceof Error && Object.isExtensible(thrown) ? thrown : new Error(describe(thrown));
    throw Object.assign(error, { isOfStrangers: true });
  }
}

/** The same executor, but all runs are apart: they disturb nobody and take no slot. `inner` stays its owner. */
export const apartExecutor = (inner: Executor<unknown, unknown>): Executor<unknown, unknown> => ({
  ...wrapExecutor(inner, {
    run: (items, handle) => inner.run(items, apartHandle(handle)),
    // No crash was counted, so none is taken back.
    found: () => undefined,
    ready: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }),
  slots: 1,
  prefetch: 0,
});
