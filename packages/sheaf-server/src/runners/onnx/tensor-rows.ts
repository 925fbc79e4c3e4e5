import { Tensor } from "./runtime.ts";
import { joinRows, type NumberArray } from "../tensors/join-rows.ts";
import type { TensorDatatype, TensorSpec } from "../contract/model-spec.ts";
import { shapeOf, type TensorItem } from "../tensors/tensor-item.ts";

const runtimeTypes = {
  FP32: "float32",
  FP64: "float64",
  INT64: "int64",
  UINT64: "uint64",
  INT32: "int32",
  UINT32: "uint32",
  INT16: "int16",
  UINT16: "uint16",
  INT8: "int8",
  UINT8: "uint8",
  BOOL: "bool",
  BYTES: "string",
} as const satisfies Record<TensorDatatype, string>;

/** The protocol's name of one of the runtime's element types; undefined for one that is not served, such as float16. */
export function datatypeOf(runtimeType: string): TensorDatatype | undefined {
  const names = Object.keys(runtimeTypes) as TensorDatatype[];
  return names.find((name) => runtimeTypes[name] === runtimeType);
}

/**
 * Items as one tensor, `[items, …shape]`; without a batch axis, the one item's own shape.
 * @throws {Error} items of different shapes: they must not meet in one tensor.
 */
export function joinItems(spec: TensorSpec, items: readonly TensorItem[], hasBatchAxis: boolean): Tensor {
  const [first] = items;
  const shape = shapeOf(spec, first ?? {});
  const other = items.map((item) => shapeOf(spec, item).join()).find((axes) => axes !== shape.join());
  if (other !== undefined) {
    throw new Error(`${spec.name}: shapes [${shape.join()}] and [${other}] cannot share a batch.`);
  }
  const axes = hasBatchAxis ? [items.length, ...shape] : [...shape];
  const rows = items.map((item) => item[spec.name]);
  const type = runtimeTypes[spec.datatype];
  if (type === "string") return new Tensor("string", rows.flat() as string[], axes);
  return new Tensor(type, joinRows(rows as NumberArray[]) as never, axes);
}

/** The rows of a tensor as results, in order; each is a view of the tensor's memory. */
export function cutRows(
  spec: TensorSpec,
  { dims, data }: Tensor,
  results: readonly TensorItem[],
  hasBatchAxis: boolean,
): void {
  const itemAxes = hasBatchAxis ? dims.slice(1) : dims;
  const length = itemAxes.reduce((product, axis) => product * axis, 1);
  const rows = hasBatchAxis ? dims[0] : 1;
  if (rows !== results.length) {
    throw new Error(`${spec.name}: the model gave ${rows} rows for ${results.length} items; its batch axis is not 0.`);
  }
  for (const [i, result] of results.entries()) {
    const [from, to] = [i * length, (i + 1) * length];
    result[spec.name] = Array.isArray(data) ? data.slice(from, to) : data.subarray(from, to);
    if (spec.shape.includes(null)) result[`shape:${spec.name}`] = Int32Array.from(itemAxes);
  }
}
