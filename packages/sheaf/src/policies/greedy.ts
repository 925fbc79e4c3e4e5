import type { Policy } from "./policy.ts";

/** Dispatches whatever waits as soon as a slot is free: near-optimal for one slot, no holding ever. */
export function greedy(): Policy {
  return { name: "greedy", decide: ({ waiting }) => ({ run: waiting }) };
}
