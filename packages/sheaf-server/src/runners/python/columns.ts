import type { WorkerDeclaration } from "sheaf/node";
import { elementTypes, type WorkerColumn } from "sheaf/internal/node";
import type { ModelInput, ModelOutput, TensorSpec } from "../contract/model-spec.ts";
import { elements } from "../tensors/elements.ts";
import type { TensorItem } from "../tensors/tensor-item.ts";

type TensorColumn = Extract<WorkerColumn, { readonly kind: "tensor" }>;

export function inputOf({ inputs }: WorkerDeclaration): ModelInput {
  const [only] = inputs as readonly [WorkerColumn];
  if (only.name !== undefined) return { kind: "tensors", tensors: inputs.map((column) => tensorOf(column)) };
  if (only.kind !== "tensor") return { kind: only.kind };
  if (isFlatFloats(only)) return { kind: "floats", length: only.shape[0]! };
  return { kind: "tensors", tensors: [tensorOf(only, bareInput)] };
}

export function outputOf({ outputs, embedding }: WorkerDeclaration): ModelOutput {
  const [only] = outputs as readonly [WorkerColumn];
  if (only.name !== undefined) return { kind: "tensors", tensors: outputs.map((column) => tensorOf(column)) };
  if (only.kind !== "tensor") return { kind: only.kind };
  if (isFlatFloats(only)) return { kind: "vector", length: only.shape[0]!, isEmbedding: embedding };
  return { kind: "tensors", tensors: [tensorOf(only, bareOutput)], isBare: true };
}

/** The protocols need a name for tensors that a worker declares without one. */
const bareInput = "input";
const bareOutput = "output";

function tensorOf(column: WorkerColumn, name: string = column.name!): TensorSpec {
  if (column.kind === "tensor") return { name, datatype: elementTypes[column.dtype].datatype, shape: column.shape };
  return { name, datatype: "BYTES", shape: [], isJson: column.kind === "json" };
}

const isFlatFloats = ({ dtype, shape }: TensorColumn): boolean => dtype === "float32" && shape.length === 1;

type Change = ((value: unknown) => unknown) | undefined;

/** An item of the server's, which has a name for every tensor and lists of texts → the worker's form of it, if that differs. */
export const toWorker = ({ inputs }: WorkerDeclaration): Change =>
  mapping(inputs, {
    whole: (item) => (item as TensorItem)[bareInput],
    text: (data) => (data as readonly string[])[0],
  });

/** A result of the worker's → the server's form of it, if that differs. */
export const fromWorker = ({ outputs }: WorkerDeclaration): Change =>
  mapping(outputs, { whole: (result) => ({ [bareOutput]: result }), text: (text) => [text] });

/** An item as JSON has it, such as one of the sample → an item of the server's. */
export function itemFromJson({ inputs }: WorkerDeclaration): (value: unknown) => unknown {
  const [only] = inputs as readonly [WorkerColumn];
  if (only.name === undefined) {
    if (only.kind !== "tensor") return (value) => value;
    return isFlatFloats(only) ? elementsOf(only) : (value) => ({ [bareInput]: elementsOf(only)(value) });
  }
  return (value) =>
    Object.fromEntries(
      inputs.map((column) => {
        const field = (value as Record<string, unknown>)[column.name!];
        if (column.kind === "tensor") return [column.name, elementsOf(column)(field)];
        return [column.name, column.kind === "text" ? [field] : field];
      }),
    );
}

/** From nested arrays, in row order. */
const elementsOf =
  ({ dtype }: TensorColumn) =>
  (value: unknown): unknown => {
    const { array: Elements, stored } = elements[elementTypes[dtype].datatype];
    const flat = [value].flat(Infinity) as number[];
    const data = new Elements(flat.length);
    for (const [i, entry] of flat.entries()) data[i] = stored === undefined ? entry : stored(entry);
    return data;
  };

interface Mapping {
  /** Of a column without a name, where the server has one. */
  readonly whole: (value: unknown) => unknown;
  /** Of a text among named columns. */
  readonly text: (value: unknown) => unknown;
}

function mapping(columns: readonly WorkerColumn[], { whole, text }: Mapping): Change {
  const [only] = columns as readonly [WorkerColumn];
  if (only.name === undefined) return only.kind === "tensor" && !isFlatFloats(only) ? whole : undefined;
  const texts = columns.flatMap(({ kind, name }) => (kind === "text" ? [name!] : []));
  if (texts.length === 0) return undefined;
  return (value) => {
    const copy: TensorItem = { ...(value as TensorItem) };
    for (const name of texts) copy[name] = text(copy[name]);
    return copy;
  };
}
