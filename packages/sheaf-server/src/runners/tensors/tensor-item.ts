import type { TensorSpec } from "../contract/model-spec.ts";

/** One item, or its result: one typed array (texts: string[]) by tensor, and `shape:NAME` where an axis is free. */
export type TensorItem = Record<string, unknown>;

/** An item's shape of a tensor, from its spec and, where an axis is free, from the item itself. */
export function shapeOf({ name, shape }: TensorSpec, item: TensorItem): readonly number[] {
  if (!shape.includes(null)) return shape as readonly number[];
  return Array.from(item[`shape:${name}`] as Int32Array);
}
