import { checkOptions } from "../shared/checks.ts";
import type { Policy } from "./policy.ts";

/** Dispatches all waiting items as soon as a slot is free, and never holds them: near-optimal for one slot. It has no options. */
export function greedy(options: Readonly<Record<string, never>> = {}): Policy {
  checkOptions(options, {});
  return { name: "greedy", decide: ({ waiting }) => ({ run: waiting }) };
}
