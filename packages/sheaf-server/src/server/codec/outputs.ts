import type { ModelInput, ModelOutput, TensorSpec } from "../../runners/contract/model-spec.ts";
import { shownElements } from "../../runners/tensors/elements.ts";
import { checkElements } from "./result-faults.ts";
import type { JsonParts } from "./json-bytes.ts";
import { jsonPart } from "./large-json.ts";

/** The fields of a worker's result that replies use. A JSON model may give anything, including null. */
interface Fields {
  readonly score?: number;
  readonly tokens?: unknown;
  readonly truncated?: unknown;
  readonly textTokens?: unknown;
  readonly isReadWhole?: unknown;
}

export function vectorOf(output: unknown): Float32Array {
  return output instanceof Float32Array ? output : (output as { vector: Float32Array }).vector;
}

/** Number of tokens of an item; 0 if the model does not count them. */
export function tokensOf(output: unknown): number {
  const tokens = (output as Fields | null | undefined)?.tokens;
  return Number.isSafeInteger(tokens) ? (tokens as number) : 0;
}

/** Whether an item's text was cut to the most tokens the model takes. */
export const isTruncated = (output: unknown): boolean => (output as Fields | null | undefined)?.truncated === true;

/** By how much a truncated text exceeds the model's limit: "has 40 tokens, more than the model's 32". */
export function excessOf(output: unknown, input: ModelInput): string {
  const { textTokens, isReadWhole } = output as Fields;
  const most = "maxTokens" in input ? input.maxTokens : undefined;
  const withQuery = input.kind === "text-pair" ? " with the query" : "";
  if (!Number.isSafeInteger(textTokens))
    return `has more than ${most === undefined ? "the model takes" : `${most} tokens`}${withQuery}`;
  const found = `has ${isReadWhole === true ? "" : "at least "}${String(textTokens)} tokens${withQuery}`;
  return `${found}, more than ${most === undefined ? "the model takes" : `the model's ${most}`}`;
}

export function outputJson(output: unknown, kind: ModelOutput): JsonParts {
  switch (kind.kind) {
    case "vector":
      return [vectorOf(output)];
    case "labels": {
      const { scores } = output as { scores: Float32Array };
      return [JSON.stringify(kind.labels.map((label, index) => ({ label, score: scores[index] })))];
    }
    case "score":
      return [JSON.stringify((output as Fields).score)];
    case "tensors": {
      const byName = tensorsJson(output as Record<string, unknown>, kind.tensors);
      return [jsonPart(kind.isBare === true ? byName[kind.tensors[0]!.name] : byName)];
    }
    case "text":
    case "json":
      return [jsonPart(output)];
  }
}

/** Nested arrays by name. */
function tensorsJson(output: Record<string, unknown>, tensors: readonly TensorSpec[]): Record<string, unknown> {
  const nested = tensors.map(({ name, shape, datatype, isJson }) => {
    if (isJson === true) return [name, output[name]];
    const held = output[name];
    checkElements(held as ArrayLike<unknown>, datatype, name);
    const data =
      datatype === "BYTES" ? (held as string[]) : shownElements(held as ArrayLike<number | bigint>, datatype);
    const actual = output[`shape:${name}`] as ArrayLike<number> | undefined;
    return [name, nest(data, actual === undefined ? (shape as number[]) : Array.from(actual))];
  });
  return Object.fromEntries(nested) as Record<string, unknown>;
}

function nest(data: readonly unknown[], [length, ...rest]: readonly number[]): unknown {
  if (length === undefined) return data[0];
  if (rest.length === 0) return data;
  const step = data.length / length;
  return Array.from({ length }, (_, index) => nest(data.slice(index * step, (index + 1) * step), rest));
}
