import { check, checkText } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import { elementTypes, type TensorDtype, type TypedArrayConstructor } from "../../shared/element-types.ts";

/**
 * One value of an item or a result. Without a name it is the whole item; with names the item is an object. `shape` is one item's, of
 * integers >= 1; scalars are not supported.
 */
export type WorkerColumn =
  | { readonly name?: string | undefined; readonly kind: "text" | "json" }
  | {
      readonly name?: string | undefined;
      readonly kind: "tensor";
      readonly dtype: TensorDtype;
      readonly shape: readonly number[];
    };

export type TensorColumn = Extract<WorkerColumn, { readonly kind: "tensor" }>;

export interface WorkerDeclaration {
  readonly name: string | undefined;
  /** One column without a name, or columns with names. */
  readonly inputs: readonly WorkerColumn[];
  readonly outputs: readonly WorkerColumn[];
  /** Each result is one vector of float32 that embeds its item. */
  readonly embedding: boolean;
  /** Items that the model takes, as JSON; empty where it gives none. */
  readonly sample: readonly unknown[];
  /** Whether a result may be kept and given to equal items; undefined where the worker does not say. */
  readonly cacheable: boolean | undefined;
  /** `"length"`: a run takes longer the longer its items are; undefined where the worker does not say. */
  readonly weight: "length" | undefined;
}

/** The element types of the protocol, with the arrays that hold them. */
export const typedArrayOf: Readonly<Record<TensorDtype, TypedArrayConstructor>> = Object.fromEntries(
  Object.entries(elementTypes).flatMap(([dtype, { array }]) => (dtype === "float16" ? [] : [[dtype, array]])),
) as Record<TensorDtype, TypedArrayConstructor>;

const maxColumns = 64;
const maxAxes = 16;
/** Values in one tensor of one item. */
const maxLength = 2 ** 28;

/** Reads a `ready` message. @throws {TypeError} naming the fault. */
export function readDeclaration(ready: Readonly<Record<string, unknown>>): WorkerDeclaration {
  const { name, inputs = "json", outputs = "json", sample = [], cacheable, weight } = ready;
  if (name !== undefined) checkText("name", name);
  check(Array.isArray(sample), "sample", "an array of items", sample, TypeError);
  check(cacheable === undefined || typeof cacheable === "boolean", "cacheable", "true or false", cacheable, TypeError);
  check(weight === undefined || weight === "length", "weight", '"length"', weight, TypeError);
  const embedding = typeof outputs === "string" && outputs.startsWith("embedding[");
  return {
    name,
    inputs: columnsOf("inputs", inputs),
    outputs: columnsOf("outputs", embedding ? outputs.replace("embedding", "float32") : outputs),
    embedding,
    sample,
    cacheable,
    weight,
  };
}

/** What a restarted worker must declare again. Its sample may differ each time. */
export const signatureOf = ({ name, inputs, outputs, embedding }: WorkerDeclaration): string =>
  JSON.stringify({ name, inputs, outputs, embedding });

/** A column as it is declared: `text`, `float32[768]`. */
export const columnText = (column: WorkerColumn): string =>
  column.kind === "tensor" ? `${column.dtype}[${column.shape.join(",")}]` : column.kind;

export const lengthOf = (shape: readonly number[]): number => shape.reduce((product, axis) => product * axis, 1);

function columnsOf(path: string, declared: unknown): WorkerColumn[] {
  if (typeof declared === "string") return [columnOf(path, declared)];
  const entries = typeof declared === "object" && declared !== null ? Object.entries(declared) : [];
  const isObject = !Array.isArray(declared) && entries.length > 0 && entries.length <= maxColumns;
  const expected = `a text such as "float32[768]", or an object of 1 to ${maxColumns} of them`;
  check(isObject, path, expected, declared, TypeError);
  return entries.map(([name, text]) => ({ name, ...columnOf(`${path}.${name}`, text) }));
}

function columnOf(path: string, text: unknown): WorkerColumn {
  if (text === "text" || text === "json") return { kind: text };
  const [, dtype = "", axes = ""] = (typeof text === "string" && /^(\w+)\[([\d,]+)\]$/.exec(text)) || [];
  const shape = axes.split(",").map(Number);
  const fits = shape.every((axis) => axis >= 1) && shape.length <= maxAxes && lengthOf(shape) <= maxLength;
  if (Object.hasOwn(typedArrayOf, dtype) && fits) return { kind: "tensor", dtype: dtype as TensorDtype, shape };
  throw new TypeError(
    `${path} must be "text", "json", or a type and shape such as "float32[768]" ` +
      `(types: ${Object.keys(typedArrayOf).join(", ")}; at most ${maxLength} values), got ${describe(text)}`,
  );
}
