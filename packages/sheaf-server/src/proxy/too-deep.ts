import { costs } from "../shared/costs.ts";

/** Whether arrays and objects are nested deeper than 500 levels. */
export function isTooDeep(value: unknown): boolean {
  // Level by level, because recursion could itself overflow the stack.
  let level = containersIn([value]);
  for (let depth = 1; level.length > 0 && depth <= costs.jsonDepth; depth++) level = level.flatMap(containersIn);
  return level.length > 0;
}

function containersIn(container: object): object[] {
  const values: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
  return values.filter((value): value is object => typeof value === "object" && value !== null);
}
