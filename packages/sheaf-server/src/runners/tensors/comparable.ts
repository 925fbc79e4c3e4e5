import type { TensorSpec } from "../contract/model-spec.ts";
import { floatsOfHalves } from "./half.ts";
import type { TensorItem } from "./tensor-item.ts";

/** Results whose numbers can be compared: halves, which are bits, as float32. */
export function comparable(results: readonly unknown[], tensors: readonly TensorSpec[]): readonly unknown[] {
  const halves = tensors.filter(({ datatype }) => datatype === "FP16");
  if (halves.length === 0) return results;
  return results.map((result) => {
    if (result instanceof Error) return result;
    const item = result as TensorItem;
    const numbers = halves.map(({ name }) => [name, floatsOfHalves(item[name] as Uint16Array)]);
    return { ...item, ...Object.fromEntries(numbers) } as TensorItem;
  });
}
