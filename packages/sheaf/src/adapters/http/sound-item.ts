/** Deeper values overflow the stack of the code that copies or writes them, which can fail their batch-mates too. */
const deepest = 500;

/** The fault of an item of any type, or undefined: JSON can be nested too deep, and hold `1e999`. */
export function complaintOn(item: unknown): string | undefined {
  // Level by level: recursion would itself overflow the stack.
  let level: readonly unknown[] = [item];
  for (let depth = 0; level.length > 0; depth++) {
    const inside: unknown[] = [];
    for (const value of level) {
      if (typeof value === "number" && !Number.isFinite(value)) return "The item holds a number that is too large.";
      if (typeof value !== "object" || value === null) continue;
      if (depth === deepest) return `The item must be nested at most ${deepest} deep.`;
      append(inside, value);
    }
    level = inside;
  }
  return undefined;
}

function append(list: unknown[], container: object): void {
  const values: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
  for (const value of values) if (typeof value === "object" || typeof value === "number") list.push(value);
}
