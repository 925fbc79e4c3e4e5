import type { ModelOutput, TensorDatatype } from "../../runners/contract/model-spec.ts";
import { Problem } from "../../problems/problem.ts";
import { shownElements } from "../../runners/tensors/elements.ts";
import { costs } from "../../shared/costs.ts";

/**
 * Refuses a result that JSON would change: NaN and ±Infinity, integers beyond a double's precision, Maps and Sets, and strings that
 * are not valid Unicode. Tensors are checked only when they are written as JSON: in binary every number is fine.
 * @throws {Problem} `MODEL_ERROR` with the place in the result.
 */
export function checkResult(result: unknown, output: ModelOutput): void {
  const parts = result as {
    readonly vector?: unknown;
    readonly scores?: unknown;
    readonly score?: unknown;
    readonly logits?: unknown;
    readonly logit?: unknown;
    readonly [name: string]: unknown;
  };
  switch (output.kind) {
    case "vector":
      return check(ArrayBuffer.isView(result) ? result : parts.vector, "");
    case "labels":
      check(parts.scores, "scores");
      return check(parts.logits, "logits");
    case "score":
      check(parts.score, "score");
      return check(parts.logit, "logit");
    case "tensors":
      for (const { name, isJson } of output.tensors) if (isJson === true) check(parts[name], name);
      return;
    case "text":
    case "json":
      return check(result, "");
  }
}

/** Checks a tensor's elements before they become JSON. `name` is the tensor's. @throws {Problem} */
export function checkElements(data: ArrayLike<unknown>, datatype: TensorDatatype, name: string): void {
  if (datatype === "FP16") return checkElements(shownElements(data as ArrayLike<number>, datatype), "FP64", name);
  if (datatype.startsWith("FP") ? !isFinite(data as ArrayLike<number>) : datatype.endsWith("64"))
    for (let i = 0; i < data.length; i++) checkNumber(data[i], () => `${name}[${i}]`);
}

function check(value: unknown, path: string, depth = 0): void {
  if (typeof value === "string" && loneSurrogate.test(value)) throw problem(path, "holds half of a surrogate pair");
  if (typeof value !== "object" || value === null) return checkNumber(value, () => path);
  if (depth > costs.jsonDepth) throw problem(path, `is nested more than ${costs.jsonDepth} deep`);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const elements = value as unknown as ArrayLike<unknown>;
    if (value instanceof BigInt64Array || value instanceof BigUint64Array || !isFinite(elements as ArrayLike<number>))
      for (let i = 0; i < elements.length; i++) checkNumber(elements[i], () => `${path}[${i}]`);
    return;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i];
      if (typeof element !== "number" || !Number.isFinite(element)) check(element, `${path}[${i}]`, depth + 1);
    }
    return;
  }
  if (value instanceof Map || value instanceof Set)
    throw problem(path, `is a ${value.constructor.name}, which JSON cannot say; give an object or an array`);
  for (const key of Object.keys(value))
    check((value as Readonly<Record<string, unknown>>)[key], path === "" ? key : `${path}.${key}`, depth + 1);
}

/** One pass without a branch per number: any number that is not finite makes the sum NaN. */
function isFinite(numbers: ArrayLike<number>): boolean {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += numbers[i]! - numbers[i]!;
  return sum === 0;
}

function checkNumber(value: unknown, path: () => string): void {
  if (typeof value === "number" && !Number.isFinite(value)) throw problem(path(), `is ${value}, which JSON cannot say`);
  if (typeof value === "bigint" && BigInt(Number(value)) !== value)
    throw problem(path(), `is ${value}, which JSON's readers would round; give it as a text`);
}

const longestPath = 200;
const loneSurrogate = /\p{Surrogate}/u;

function problem(path: string, what: string): Problem {
  const where = path === "" ? "The model's result" : `The model's result at ${path.slice(0, longestPath)}`;
  return new Problem("MODEL_ERROR", `${where} ${what}.`);
}
