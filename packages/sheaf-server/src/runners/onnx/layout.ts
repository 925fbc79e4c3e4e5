import type { InferenceSession } from "./runtime.ts";
import type { TensorSpec } from "../contract/model-spec.ts";
import { datatypeOf } from "../tensors/elements.ts";

/** How items lie in a model's tensors. */
export interface OnnxLayout {
  /** Tensors of one item: without the batch axis, where the model has one. */
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /**
   * `"batch"`: axis 0 of every tensor is free and counts items. `"one-row"`: it is fixed at 1. `"whole"`: there is no
   * such axis, so that an item is all of every tensor. The latter two are served one by one.
   */
  readonly axis: "batch" | "one-row" | "whole";
  readonly reason?: string | undefined;
}

type Metadata = readonly InferenceSession.ValueMetadata[];

/** @throws {Error} naming a tensor of a type that is not served, or that the model has no tensor to give. */
export function layoutOf(inputMetadata: Metadata, outputMetadata: Metadata): OnnxLayout {
  const inputs = inputMetadata.map((input) => {
    if (!input.isTensor) throw new Error(`input ${input.name} is a sequence or a map; only tensors are served`);
    return wholeTensor(input, "input");
  });
  // Sequences and maps, such as the probabilities of scikit-learn's converter, are left out.
  const outputs = outputMetadata.filter(({ isTensor }) => isTensor).map((output) => wholeTensor(output, "output"));
  if (outputs.length === 0) throw new Error("none of its outputs is a tensor");

  const tensors = [...inputs, ...outputs];
  const withoutFirst = (specs: readonly TensorSpec[]): TensorSpec[] =>
    specs.map((spec) => ({ ...spec, shape: spec.shape.slice(1) }));
  if (inputs.length > 0 && tensors.every(({ shape }) => shape[0] === null)) {
    return { inputs: withoutFirst(inputs), outputs: withoutFirst(outputs), axis: "batch" };
  }
  if (inputs.length > 0 && tensors.every(({ shape }) => shape[0] === 1 || shape[0] === null)) {
    const one = tensors.find(({ shape }) => shape[0] === 1);
    const reason = `its batch axis is fixed at 1 (axis 0 of ${one?.name})`;
    return { inputs: withoutFirst(inputs), outputs: withoutFirst(outputs), axis: "one-row", reason };
  }
  const fixed = tensors.find(({ shape }) => shape[0] !== null);
  const reason =
    fixed === undefined
      ? "it has no inputs"
      : `axis 0 of ${fixed.name} is ${fixed.shape[0] === undefined ? "not there" : `fixed at ${fixed.shape[0]}`}`;
  return { inputs, outputs, axis: "whole", reason };
}

function wholeTensor(metadata: InferenceSession.ValueMetadata, side: "input" | "output"): TensorSpec {
  if (!metadata.isTensor) throw new Error(`${side} ${metadata.name} is not a tensor`);
  const { name, type, shape } = metadata;
  const datatype = datatypeOf(type);
  if (datatype === undefined) {
    throw new Error(`${side} ${name} is ${type}, which is not served; export the model with float32 ${side}s`);
  }
  return { name, datatype, shape: shape.map((axis) => (typeof axis === "number" && axis > 0 ? axis : null)) };
}
