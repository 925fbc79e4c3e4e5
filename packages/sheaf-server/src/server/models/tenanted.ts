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
  };
}

/** Whose turn it is, and for how much. */
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

/** Notes that the error of a run is not its items' own, as a property: a worker's error takes it to the gateways of its fleet. */
async function ofStrangers<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (thrown instanceof BatcherError) throw thrown;
    const error = thrown instanceof Error && Object.isExtensible(thrown) ? thrown : new Error(describe(thrown));
    throw Object.assign(error, { isOfStrangers: true });
  }
}

/** The same executor, of which every run is apart: it disturbs nobody, and takes no slot. It belongs to the other one. */
export const apartExecutor = (inner: Executor<unknown, unknown>): Executor<unknown, unknown> => ({
  ...wrapExecutor(inner, {
    run: (items, handle) => inner.run(items, apartHandle(handle)),
    // No crash of it was counted that could be taken back.
    found: () => undefined,
    ready: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }),
  slots: 1,
  prefetch: 0,
});
