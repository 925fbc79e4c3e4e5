import type { ModelInput, ModelOutput, TensorDatatype, TensorSpec } from "../../../runners/contract/model-spec.ts";
import { joinRows } from "../../../runners/tensors/join-rows.ts";
import { changedValues } from "../../../http/bodies/changed-values.ts";
import { JsonBounds } from "../../../http/bodies/json-bounds.ts";
import { jsonText } from "../../codec/large-json.ts";
import { vectorOf } from "../../codec/outputs.ts";
import type { ServedModel } from "../../models/served-model.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import type { NumberArray } from "../../../runners/tensors/elements.ts";
import { malformed, type TensorData } from "./tensor-data.ts";

/** A tensor of a model as the protocol names it; `shape` is one item's. */
export interface ProtocolTensor extends TensorSpec {
  /** Whether axis 0 counts items, before those of `shape`. */
  readonly hasBatchAxis: boolean;
}

/** A tensor of a request or a reply, with its whole shape. */
export interface TensorValue {
  readonly name: string;
  readonly datatype: TensorDatatype;
  readonly shape: readonly number[];
  readonly data: TensorData;
}

/** A tensor of a request, with the path of its elements in it. */
export interface RequestTensor extends TensorValue {
  readonly path: string;
}

// Any JSON value as a text a row: items and results of worker modules have no other shape in common.
const jsonTensor = (name: string): ProtocolTensor => ({ name, datatype: "BYTES", shape: [], hasBatchAxis: true });

export function inputTensors(input: ModelInput): readonly ProtocolTensor[] {
  switch (input.kind) {
    case "text":
      return [{ name: "text", datatype: "BYTES", shape: [], hasBatchAxis: true }];
    case "text-pair":
      return ["query", "text"].map((name) => ({ name, datatype: "BYTES", shape: [], hasBatchAxis: true }));
    case "floats":
      return [{ name: input.name ?? "input", datatype: "FP32", shape: [input.length], hasBatchAxis: true }];
    case "tensors":
      return withBatchAxis(input.tensors, input.hasBatchAxis);
    case "json":
      return [jsonTensor("input")];
  }
}

export function outputTensors(output: ModelOutput): readonly ProtocolTensor[] {
  switch (output.kind) {
    case "vector":
      return [{ name: output.name ?? "output", datatype: "FP32", shape: [output.length], hasBatchAxis: true }];
    case "labels":
      return [{ name: "scores", datatype: "FP32", shape: [output.labels.length], hasBatchAxis: true }];
    case "score":
      return [{ name: "score", datatype: "FP32", shape: [], hasBatchAxis: true }];
    case "tensors":
      return withBatchAxis(output.tensors, output.hasBatchAxis);
    case "text":
      return [{ name: "output", datatype: "BYTES", shape: [], hasBatchAxis: true }];
    case "json":
      return [jsonTensor("output")];
  }
}

const withBatchAxis = (tensors: readonly TensorSpec[], hasBatchAxis = true): ProtocolTensor[] =>
  tensors.map((tensor) => ({ ...tensor, hasBatchAxis }));

/** A tensor's shape as metadata shows it: -1 where it is free. */
export const metadataShape = ({ shape, hasBatchAxis }: ProtocolTensor): number[] => [
  ...(hasBatchAxis ? [-1] : []),
  ...shape.map((axis) => axis ?? -1),
];

/** Checks a shape against the model's. @returns how many items it holds. @throws {Problem} 422. */
export function itemCountOf(tensor: ProtocolTensor, shape: readonly number[], path: string): number {
  // A text a row may also come as a column, `[items, 1]`, as many clients send it.
  const isColumn = tensor.datatype === "BYTES" && tensor.shape.length === 0 && shape.length === 2 && shape[1] === 1;
  const expected = metadataShape(tensor);
  const fits =
    isColumn || (shape.length === expected.length && expected.every((axis, i) => axis === -1 || axis === shape[i]));
  if (!fits) throw mismatch(path, expected, shape);
  if (shape.includes(0)) throw mismatch(path, expected, shape);
  return tensor.hasBatchAxis ? shape[0]! : 1;
}

function mismatch(path: string, expected: readonly number[], shape: readonly number[]): Problem {
  const message = `${path} must be [${expected.join(", ")}] (-1: any length above 0), got [${shape.join(", ")}].`;
  return new Problem("INVALID_INPUT", message, { param: path });
}

/** Cuts a request's tensors into items of the model, which checks those that are not tensors in the end, such as texts. */
export function itemsOf(
  { definition: { input }, parse }: Pick<ServedModel, "definition" | "parse">,
  values: readonly RequestTensor[],
  count: number,
): unknown[] {
  const bounds = new JsonBounds();
  const rows = (value: TensorValue): TensorData[] => {
    const length = value.data.length / count;
    return Array.from({ length: count }, (_, i) => {
      const [from, to] = [i * length, (i + 1) * length];
      return Array.isArray(value.data) ? value.data.slice(from, to) : value.data.subarray(from, to);
    });
  };
  const [first] = values;
  if (first === undefined) throw malformed("The model has no inputs.");
  switch (input.kind) {
    case "text":
      return rows(first).map(([text], i) => parse(text, `${first.path}[${i}]`));
    case "text-pair": {
      const [queries, texts] = ["query", "text"].map((name) => rows(values.find((value) => value.name === name)!));
      return queries!.map(([query], i) => parse({ query, text: texts![i]![0] }, `row ${i}`));
    }
    case "floats":
      return rows(first);
    case "tensors": {
      const cut = values.map((value) => ({ value, rows: rows(value) }));
      const hasBatchAxis = input.hasBatchAxis ?? true;
      return Array.from({ length: count }, (_, i) => {
        const item: Record<string, unknown> = {};
        for (const { value, rows: ofValue } of cut) {
          const spec = input.tensors.find(({ name }) => name === value.name);
          const row = ofValue[i]!;
          item[value.name] = spec?.isJson === true ? jsonValue(row[0], `${value.path}[${i}]`, bounds) : row;
          if (spec?.shape.includes(null) === true)
            item[`shape:${value.name}`] = Int32Array.from(hasBatchAxis ? value.shape.slice(1) : value.shape);
        }
        return item;
      });
    }
    case "json":
      return rows(first).map(([text], i) => jsonValue(text, `${first.path}[${i}]`, bounds));
  }
}

/** The value that a text holds as JSON; `bounds` are those of all texts of a request. @throws {Problem} 422. */
function jsonValue(text: TensorData[number] | undefined, path: string, bounds: JsonBounds): unknown {
  const bytes = Buffer.from(text as string);
  bounds.check(bytes, path);
  let value: unknown;
  try {
    value = JSON.parse(text as string);
  } catch {
    throw invalid(path, 'a text of JSON, such as "[1, 2]"', text);
  }
  changedValues(bytes, value, path);
  return value;
}

/** Joins results into one tensor. @throws {Problem} rows of different shapes have no tensor in common. */
export function resultTensor(output: ModelOutput, tensor: ProtocolTensor, results: readonly unknown[]): TensorValue {
  const { name, datatype, hasBatchAxis } = tensor;
  const shape = tensor.shape.includes(null) ? commonShape(name, results) : (tensor.shape as number[]);
  const axes = hasBatchAxis ? [results.length, ...shape] : shape;
  const rows = results.map((result): TensorData => {
    if (output.kind === "vector") return vectorOf(result);
    if (output.kind === "text") return [result as string];
    if (output.kind === "json") return [jsonText(result)];
    if (output.kind === "labels") return (result as { scores: Float32Array }).scores;
    if (output.kind === "score") return Float32Array.of((result as { score: number }).score);
    const value = (result as Record<string, unknown>)[name];
    return tensor.isJson === true ? [jsonText(value)] : (value as TensorData);
  });
  const data = datatype === "BYTES" ? (rows.flat() as string[]) : joinRows(rows as NumberArray[]);
  return { name, datatype, shape: axes, data };
}

function commonShape(name: string, results: readonly unknown[]): number[] {
  const shapes = results.map((result) => Array.from((result as Record<string, Int32Array>)[`shape:${name}`]!));
  const [shape = []] = shapes;
  if (shapes.every((other) => other.join() === shape.join())) return shape;
  throw new Problem("INVALID_INPUT", `${name} has rows of different shapes; send these rows one by one.`);
}
