import { arrayOf } from "./calls/lists.ts";
import { iteratorOf } from "./calls/map.ts";
import type { Batcher, BatcherPending } from "./contract/batcher.ts";
import type { CallOptions } from "./contract/options.ts";
import type { Settings } from "./contract/settings.ts";
import type { BatchObserver } from "./dispatch/dispatcher.ts";
import type { Queue } from "./queue/queue.ts";

const readPending = Symbol();
export const askRoom: unique symbol = Symbol();
const readInside = Symbol();

/** The parts of a batcher that a recorder of its calls looks at. */
export interface Inside {
  readonly settings: Settings<never, never>;
  readonly queue: Pick<Queue<never>, "tally" | "leavers" | "refused">;
  readonly observers: BatchObserver[];
}

type AskRoom = (options: CallOptions | undefined) => void;

// One getter for all batchers: with its own, each would have a hidden class of its own, which keeps the whole batcher in
// memory until a full garbage collection.
const pending = {
  get(this: { readonly [readPending]: () => BatcherPending }): BatcherPending {
    return this[readPending]();
  },
};

/** A batcher of its call, its methods and its fields: its name, and its pending items and batches now. */
export function callable<In, Out>(
  call: (item: In, options?: number) => Promise<Out>,
  methods: Omit<Batcher<In, Out>, "name" | "pending">,
  name: string,
  pendingNow: () => BatcherPending,
  room?: AskRoom,
  inside?: object,
): Batcher<In, Out> {
  const batcher = Object.assign(call, methods, { [readPending]: pendingNow, [askRoom]: room, [readInside]: inside });
  return Object.defineProperties(batcher, { name: { value: name }, pending }) as unknown as Batcher<In, Out>;
}

/**
 * Refuses a call before its item is known, and its options where they are undefined, if any other in its lane would be refused; it
 * counts as refused. A batcher that cannot tell refuses none.
 * @throws {BatcherError} `QUEUE_FULL`
 */
export const checkRoom = (batcher: Pick<Batcher<never, unknown>, "name">, options: CallOptions | undefined): void =>
  (batcher as unknown as { readonly [askRoom]?: AskRoom })[askRoom]?.(options);

/** `Inside`, or what else a recorder looks at in a batcher that runs its batches elsewhere; undefined if there is nothing. */
export const insideOf = (batcher: object): object | undefined =>
  (batcher as { readonly [readInside]?: object })[readInside];

/** Lets a recorder look at what stands in for a batcher. */
export const withInsideOf = <T extends object>(batcher: object, standIn: T): T =>
  Object.assign(standIn, { [readInside]: insideOf(batcher) });

/** The changes that a batcher makes to a call before it passes it on to another. */
export interface BatcherWrap<In, Inner> {
  /** Maps the item; an error that it throws rejects the call, of `settle` that item. Default: the item itself. */
  readonly item?: (item: In, options: CallOptions | undefined) => Inner;
  /** Default: as they are. */
  readonly options?: (options: CallOptions | undefined) => CallOptions | undefined;
}

/** A batcher to call in place of another: the same in everything but the changes of `change`. */
export function wrapBatcher<In, Inner, Out>(
  batcher: Batcher<Inner, Out>,
  { item: itemOf, options: optionsOf = (options) => options }: BatcherWrap<In, Inner>,
): Batcher<In, Out> {
  const innerOf = itemOf ?? ((item: In) => item as unknown as Inner);
  type One<T> = (item: Inner, options?: CallOptions) => Promise<T>;
  type Several<T> = (items: Iterable<Inner>, options?: CallOptions) => Promise<T>;
  const one =
    <T>(inner: One<T>) =>
    (item: In, given?: CallOptions | number): Promise<T> => {
      const options = typeof given === "object" && given !== null ? given : undefined;
      try {
        return inner(innerOf(item, options), optionsOf(options));
      } catch (error) {
        return Promise.reject(error);
      }
    };
  const several =
    <T>(inner: Several<T>) =>
    async (items: Iterable<In>, options?: CallOptions): Promise<T> =>
      inner(
        itemOf === undefined ? same(items) : Array.from(arrayOf(items), (item) => itemOf(item, options)),
        optionsOf(options),
      );
  /** An item that cannot be mapped is an outcome of its own. */
  const settling =
    <T>(inner: Several<PromiseSettledResult<T>[]>) =>
    async (items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<T>[]> => {
      if (itemOf === undefined) return inner(same(items), optionsOf(options));
      const mapped: Inner[] = [];
      const refusals = Array.from(arrayOf(items), (item): PromiseRejectedResult | undefined => {
        try {
          mapped.push(itemOf(item, options));
          return undefined;
        } catch (reason) {
          return { status: "rejected", reason };
        }
      });
      const outcomes = (await inner(mapped, optionsOf(options))).values();
      return refusals.map((refusal) => refusal ?? outcomes.next().value!);
    };
  const { name, capacity, flush, drain, close, ready, stats, subscribe } = batcher;
  const methods = {
    detailed: one(batcher.detailed),
    settleDetailed: settling(batcher.settleDetailed),
    many: several(batcher.many),
    settle: settling(batcher.settle),
    map: (items: Iterable<In> | AsyncIterable<In>, options?: CallOptions) =>
      batcher.map(
        itemOf === undefined ? same(items) : eachOf(items, (item) => itemOf(item, options)),
        optionsOf(options),
      ),
    capacity,
    flush,
    drain,
    close,
    ready,
    stats,
    subscribe,
    [Symbol.asyncDispose]: batcher[Symbol.asyncDispose],
  };
  const room: AskRoom = (options) => checkRoom(batcher, options && optionsOf(options));
  return callable<In, Out>(one<Out>(batcher), methods, name, () => batcher.pending, room, insideOf(batcher));
}

/** Without `item` they are the inner batcher's own. */
const same = <Items>(items: unknown): Items => items as Items;

async function* eachOf<In, T>(items: Iterable<In> | AsyncIterable<In>, itemOf: (item: In) => T): AsyncGenerator<T> {
  for await (const item of { [Symbol.asyncIterator]: () => iteratorOf(items) as AsyncIterator<In> }) yield itemOf(item);
}
