import type { Batcher, BatcherPending } from "./contract/batcher.ts";

const readPending = Symbol();

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
): Batcher<In, Out> {
  const batcher = Object.assign(call, methods, { [readPending]: pendingNow });
  return Object.defineProperties(batcher, { name: { value: name }, pending }) as unknown as Batcher<In, Out>;
}
