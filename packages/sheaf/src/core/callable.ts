import type { Batcher, BatcherLoad } from "./batcher.ts";

const readLoad = Symbol("load");

// One getter for all batchers: with its own, each would have a hidden class of its own, which keeps the whole batcher in
// memory until a full garbage collection.
const load = {
  get(this: { readonly [readLoad]: () => BatcherLoad }): BatcherLoad {
    return this[readLoad]();
  },
};

/** A batcher of its call, its methods and what they cannot be: its name, and its load at the moment of asking. */
export function callable<In, Out>(
  call: (item: In, options?: number) => Promise<Out>,
  methods: Omit<Batcher<In, Out>, "name" | "load">,
  name: string,
  loadNow: () => BatcherLoad,
): Batcher<In, Out> {
  const batcher = Object.assign(call, methods, { [readLoad]: loadNow });
  return Object.defineProperties(batcher, { name: { value: name }, load }) as unknown as Batcher<In, Out>;
}
