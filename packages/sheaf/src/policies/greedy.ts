import type { Policy } from "./policy.ts";

/** Dispatches all waiting items as soon as a slot is free, and never holds them: near-optimal for one slot. */
export function greedy(): Policy {
  return { name: "greedy", decide: ({ waiting }) => ({ run: waiting }) };
}
