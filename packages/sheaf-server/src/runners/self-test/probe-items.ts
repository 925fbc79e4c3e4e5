import type { TensorSpec } from "../contract/model-spec.ts";
import type { TensorItem } from "../tensors/tensor-item.ts";

/** A model file's description of the axes of a tensor: lengths and names. */
type NamedAxes = { readonly name: string } & (
  { readonly isTensor: true; readonly shape: readonly (number | string)[] } | { readonly isTensor: false }
);

const freeAxisLength = 4;
const itemCount = 3;

/**
 * Made-up items to try a model with: floats are noise, each item's 8 times as large as the one before, so that anything
 * that is scaled by the batch shows; whole numbers are 0 and 1, which are ids in any vocabulary.
 * @param batchAxes how many axes of the metadata the specs leave out
 */
export function probeItems(
  specs: readonly TensorSpec[],
  metadata: readonly NamedAxes[],
  batchAxes: 0 | 1,
): TensorItem[] {
  return Array.from({ length: itemCount }, (_, index) => {
    const item: TensorItem = {};
    for (const spec of specs) {
      const axes = metadata.find(({ name }) => name === spec.name);
      const named = axes?.isTensor === true ? axes.shape.slice(batchAxes) : [];
      // Axes of one name are of one length in any model; all free ones are.
      const shape = spec.shape.map((axis, i) => axis ?? (named[i] === "" ? 1 : freeAxisLength));
      const length = shape.reduce((product, axis) => product * axis, 1);
      item[spec.name] = content(spec, length, index);
      if (spec.shape.includes(null)) item[`shape:${spec.name}`] = Int32Array.from(shape);
    }
    return item;
  });
}

function content({ datatype }: TensorSpec, length: number, index: number): unknown {
  const noise = (i: number): number => Math.sin((i + 1) * 12.9898 + index) * 8 ** index;
  // No two items are alike, and none is all zeros: a mask that hides everything breaks a model.
  const bit = (i: number): number => (index < 2 ? i + index : (i + index - 1) >> 1) % 2;
  const fill = <Value>(value: (i: number) => Value): Value[] => Array.from({ length }, (_, i) => value(i));
  switch (datatype) {
    case "FP32":
      return Float32Array.from(fill(noise));
    case "FP64":
      return Float64Array.from(fill(noise));
    case "INT64":
      return BigInt64Array.from(fill((i) => BigInt(bit(i))));
    case "UINT64":
      return BigUint64Array.from(fill((i) => BigInt(bit(i))));
    case "INT32":
      return Int32Array.from(fill(bit));
    case "UINT32":
      return Uint32Array.from(fill(bit));
    case "INT16":
      return Int16Array.from(fill(bit));
    case "UINT16":
      return Uint16Array.from(fill(bit));
    case "INT8":
      return Int8Array.from(fill(bit));
    case "UINT8":
    case "BOOL":
      return Uint8Array.from(fill(bit));
    case "BYTES":
      return fill((i) => (bit(i) === 0 ? "warm" : "up"));
  }
}
