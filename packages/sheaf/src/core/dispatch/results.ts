import { describe } from "../../shared/describe.ts";
import { BatcherError } from "../contract/errors.ts";
import type { BaseRunHandle } from "../contract/base-run-handle.ts";
import { warnOnce } from "../runtime/globals.ts";
import type { Settings } from "../contract/settings.ts";

/** Puts the results of batch functions in the order of their items, and checks them. */
export function resultsInOrder<In>({
  name,
  resultKey = (item) => item,
  onMissing,
}: Pick<Settings<In, unknown>, "name" | "resultKey" | "onMissing">): (
  results: unknown,
  items: readonly In[],
  handle: Pick<BaseRunHandle, "unanswered">,
) => ArrayLike<unknown> {
  const warn = warnOnce();
  return (results, items, handle) => {
    if (!(results instanceof Map)) return checkResults(results, items.length, name, handle.unanswered());
    let isHit = false;
    const found = items.map((item): unknown => {
      let key: unknown;
      try {
        key = resultKey(item);
      } catch (error) {
        return error instanceof Error ? error : new Error(`resultKey threw ${describe(error)}`);
      }
      if (results.has(key)) {
        isHit = true;
        return results.get(key);
      }
      if (onMissing !== "error") return undefined;
      return new BatcherError("MISSING_RESULT", `${name}: the batch function's Map has no key ${describe(key)}`, {
        key,
      });
    });
    // An empty Map means that nothing was found; one with other keys, that they are of another kind.
    if (!isHit && results.size > 0) {
      warn(`${name}: no item has a key of the Map that the batch function returned: set resultKey`);
    }
    return found;
  };
}

/**
 * Checks the results of a batch function: one per item, in order. `open` are the items that it has not answered early; where
 * there are none it may return anything.
 */
export function checkResults(
  results: unknown,
  size: number,
  name: string,
  open?: readonly number[],
): ArrayLike<unknown> {
  if (open?.length === 0) return [];
  if (typeof results === "string" || !isArrayLike(results)) {
    throw new TypeError(
      `${name}: the batch function must return an array with one result per item, got ${describe(results)}`,
    );
  }
  if (results.length !== size) {
    throw new BatcherError(
      "RESULT_COUNT",
      `${name}: the batch function returned ${results.length} results for ${size} items. ` +
        "Return one result per item, in the order of the items, including those answered early; put an Error in the place of an item " +
        "that failed.",
      { expected: size, received: results.length },
    );
  }
  return results;
}

function isArrayLike(value: unknown): value is ArrayLike<unknown> {
  return typeof value === "object" && value !== null && Number.isInteger((value as { length?: unknown }).length);
}
