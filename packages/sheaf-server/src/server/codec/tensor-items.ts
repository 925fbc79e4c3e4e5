import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { elements, type Element } from "../../runners/tensors/elements.ts";
import type { TensorSpec } from "../../runners/contract/model-spec.ts";
import { invalid } from "../../problems/problem.ts";
import { textAt } from "./text-at.ts";

/**
 * Reads one item from nested JSON arrays: `{ name: [[…]] }`, or the bare array if the model has one input. Returns one typed array
 * per tensor (texts: string[]; JSON unchanged), plus `shape:NAME` if an axis is free.
 * @throws {Problem} naming path, expected and got.
 */
export function tensorItem(value: unknown, path: string, tensors: readonly TensorSpec[]): Record<string, unknown> {
  const [only] = tensors;
  const isNamed = typeof value === "object" && value !== null && !Array.isArray(value);
  const named = tensors.length === 1 && !isNamed ? { [only!.name]: value } : value;
  if (typeof named !== "object" || named === null || Array.isArray(named))
    throw invalid(path, `an object with ${tensors.map(({ name }) => name).join(", ")}`, value);
  const unknown = Object.keys(named).find((key) => !tensors.some(({ name }) => name === key));
  if (unknown !== undefined)
    throw invalid(path, `an object with only ${tensors.map(({ name }) => name).join(", ")}`, unknown);
  const item: Record<string, unknown> = {};
  for (const tensor of tensors) {
    const content = (named as Record<string, unknown>)[tensor.name];
    const at = isNamed ? (path === "" ? tensor.name : `${path}.${tensor.name}`) : path;
    if (tensor.isJson === true) {
      if (content === undefined) throw invalid(at, "any JSON value", content);
      item[tensor.name] = content;
      continue;
    }
    const { data, shape } = flatten(content, at, tensor);
    item[tensor.name] = data;
    if (tensor.shape.includes(null)) item[`shape:${tensor.name}`] = Int32Array.from(shape);
  }
  return item;
}

export function tensorSchema({ shape, datatype, isJson }: TensorSpec): Schema {
  if (isJson === true) return Type.Unknown({ description: "Any JSON value." });
  const element = datatype === "BYTES" ? Type.String() : elementSchema(elements[datatype]);
  return shape.reduceRight<Schema>(
    (inner, length) => Type.Array(inner, { minItems: length ?? 1, ...(length === null ? {} : { maxItems: length }) }),
    element,
  );
}

function elementSchema({ datatype, isWhole, minimum, maximum }: Element): Schema {
  if (datatype === "BOOL") return Type.Boolean();
  return isWhole ? Type.Integer({ minimum, maximum }) : Type.Number({ minimum, maximum });
}

function flatten(content: unknown, path: string, { datatype, shape }: TensorSpec): { data: unknown; shape: number[] } {
  const actual: number[] = [];
  let level: unknown = content;
  for (const [axis, length] of shape.entries()) {
    const at = path + "[0]".repeat(axis);
    if (!Array.isArray(level)) throw invalid(at, `an array of ${length ?? "any number of"} elements`, level);
    if (length !== null && level.length !== length) throw invalid(at, `an array of ${length} elements`, level);
    if (level.length === 0) throw invalid(at, "an array that is not empty", level);
    actual.push(level.length);
    level = level[0];
  }
  const length = actual.reduce((product, axis) => product * axis, 1);
  if (datatype === "BYTES") return { data: texts(content, path, actual), shape: actual };
  const element = elements[datatype];
  const { stored } = element;
  const data = new element.array(length);
  let filled = 0;
  walk(content, path, actual, (value, at) => {
    if (!element.holds(value)) throw invalid(at(), element.expected, value);
    data[filled++] = stored === undefined ? (value as number) : stored(value);
  });
  return { data, shape: actual };
}

function texts(content: unknown, path: string, shape: readonly number[]): string[] {
  const data: string[] = [];
  walk(content, path, shape, (value, at) => {
    data.push(typeof value === "string" && value.isWellFormed() ? value : textAt(value, at()));
  });
  return data;
}

/** Visits every element in row order; all arrays of an axis must have the same length. */
function walk(
  content: unknown,
  path: string,
  shape: readonly number[],
  visit: (value: unknown, at: () => string) => void,
): void {
  if (shape.length === 0) return visit(content, () => path);
  const [length, ...rest] = shape;
  if (!Array.isArray(content) || content.length !== length)
    throw invalid(path, `an array of ${length} elements`, content);
  if (rest.length > 0) return content.forEach((row: unknown, index) => walk(row, `${path}[${index}]`, rest, visit));
  content.forEach((value: unknown, index) => visit(value, () => `${path}[${index}]`));
}
