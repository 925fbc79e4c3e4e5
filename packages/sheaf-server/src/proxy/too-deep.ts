import { costs } from "../shared/costs.ts";

/** Whether arrays and objects stand in one another deeper than 500. */
export function isTooDeep(value: unknown): boolean {
  // One level of nesting after the other: a recursion would overflow the stack itself.
  let level = containersIn([value]);
  for (let depth = 1; level.length > 0 && depth <= costs.jsonDepth; depth++) level = level.flatMap(containersIn);
  return level.length > 0;
}

function containersIn(container: object): object[] {
  const values: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
  return values.filter((value): value is object => typeof value === "object" && value !== null);
}
