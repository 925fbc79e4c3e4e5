import { Tensor } from "./runtime.ts";
import { elements, type NumberArray } from "../tensors/elements.ts";
import { joinRows } from "../tensors/join-rows.ts";
import type { TensorSpec } from "../contract/model-spec.ts";
import { shapeOf, type TensorItem } from "../tensors/tensor-item.ts";

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
  if (spec.datatype === "BYTES") return new Tensor("string", rows.flat() as string[], axes);
  const { dtype } = elements[spec.datatype];
  return new Tensor(dtype as "float32", joinRows(rows as NumberArray[]) as Float32Array, axes);
}

/** The rows of a tensor as results, in order; each is a view of the tensor's memory. */
export function cutRows(spec: TensorSpec, tensor: Tensor, results: readonly TensorItem[], hasBatchAxis: boolean): void {
  const { dims } = tensor;
  // Where Node has a Float16Array, the runtime gives one.
  const data = tensor.type === "float16" ? bitsOf(tensor.data as Uint16Array) : tensor.data;
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

const bitsOf = ({ buffer, byteOffset, length }: Uint16Array): Uint16Array =>
  new Uint16Array(buffer, byteOffset, length);
