import { BatcherError } from "./errors.ts";

/** Checks what a batch function returned: one result per item, in order. */
export function checkResults(results: unknown, size: number, name: string): ArrayLike<unknown> {
  if (typeof results === "string" || !isArrayLike(results)) {
    throw new TypeError(
      `${name}: the batch function must return an array with one result per item, got ${kindOf(results)}`,
    );
  }
  if (results.length !== size) {
    throw new BatcherError(
      "RESULT_COUNT",
      `${name}: the batch function returned ${results.length} results for ${size} items. ` +
        "Return one result per item, in the order of the items; put an Error in the place of an item that failed.",
      { expected: size, received: results.length },
    );
  }
  return results;
}

function isArrayLike(value: unknown): value is ArrayLike<unknown> {
  return typeof value === "object" && value !== null && Number.isInteger((value as { length?: unknown }).length);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = value.constructor?.name;
  return name === undefined || name === "Object" ? "an object without length" : `a ${name}`;
}
