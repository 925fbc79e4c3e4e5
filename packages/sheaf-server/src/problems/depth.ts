import { Problem } from "./problem.ts";

/** Deeper values overflow the stack of the code that copies or writes them, which would fail their batch-mates too. */
export const deepest = 500;

/** Whether arrays and objects stand in one another deeper than `deepest`. */
export function isTooDeep(value: unknown): boolean {
  // One level of nesting after the other: a recursion would overflow the stack itself.
  let level = containersIn([value]);
  for (let depth = 1; level.length > 0 && depth <= deepest; depth++) level = level.flatMap(containersIn);
  return level.length > 0;
}

/** The value itself. @throws {Problem} 422 where it is too deep. */
export function boundedDepth(value: unknown, path: string): unknown {
  if (!isTooDeep(value)) return value;
  const where = path === "" ? "The body" : path;
  const message = `${where} must be nested at most ${deepest} deep.`;
  throw new Problem("INVALID_INPUT", message, { param: path || undefined });
}

function containersIn(container: object): object[] {
  const values: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
  return values.filter((value): value is object => typeof value === "object" && value !== null);
}
