import type { TensorSpec } from "../contract/model-spec.ts";
import { elements } from "../tensors/elements.ts";
import type { TensorItem } from "../tensors/tensor-item.ts";
import { farTimes } from "./neighbours.ts";
import { noise } from "./sample-items.ts";

/** A model file's description of the axes of a tensor: lengths and names. */
type NamedAxes = { readonly name: string } & (
  { readonly isTensor: true; readonly shape: readonly (number | string)[] } | { readonly isTensor: false }
);

const freeAxisLength = 4;
const itemCount = 3;

/** Made-up items to try a model with, and others that must not change their results by sharing a run. */
export interface Probes {
  readonly items: readonly TensorItem[];
  readonly neighbours: readonly TensorItem[];
}

/**
 * Floats are noise, each item's 8 times as large as the one before, so that anything that is scaled by the batch shows; whole numbers
 * are 0 and 1, which are ids in any vocabulary. Of the neighbours one has floats a million times as large, the other whole numbers
 * as large as that or as their type takes.
 * @param batchAxes how many axes of the metadata the specs leave out
 */
export function probeItems(specs: readonly TensorSpec[], metadata: readonly NamedAxes[], batchAxes: 0 | 1): Probes {
  const itemOf = (index: number, large?: "floats" | "whole"): TensorItem => {
    const item: TensorItem = {};
    for (const spec of specs) {
      const axes = metadata.find(({ name }) => name === spec.name);
      const named = axes?.isTensor === true ? axes.shape.slice(batchAxes) : [];
      // Axes of one name are of one length in any model; all free ones are.
      const shape = spec.shape.map((axis, i) => axis ?? (named[i] === "" ? 1 : freeAxisLength));
      const length = shape.reduce((product, axis) => product * axis, 1);
      item[spec.name] = content(spec, length, index, large);
      if (spec.shape.includes(null)) item[`shape:${spec.name}`] = Int32Array.from(shape);
    }
    return item;
  };
  const neighbours = (["floats", "whole"] as const).map((large) => itemOf(0, large));
  return { items: Array.from({ length: itemCount }, (_, index) => itemOf(index)), neighbours };
}

function content({ datatype }: TensorSpec, length: number, index: number, large?: "floats" | "whole"): unknown {
  const float = (i: number): number => noise(i, index) * 8 ** index;
  // No two items are alike, and none is all zeros: a mask that hides everything breaks a model.
  const bit = (i: number): number => (index < 2 ? i + index : (i + index - 1) >> 1) % 2;
  if (datatype === "BYTES") return Array.from({ length }, (_, i) => (bit(i) === 0 ? "warm" : "up"));
  const { array: Elements, isWhole, maximum, stored } = elements[datatype];
  const times = large === (isWhole ? "whole" : "floats") ? farTimes : 1;
  const data = new Elements(length);
  for (let i = 0; i < length; i++) {
    const value = Math.min(maximum, times * (isWhole ? bit(i) : float(i)));
    data[i] = stored === undefined ? value : stored(value);
  }
  return data;
}
