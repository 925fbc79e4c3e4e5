import { describe, nearestOf } from "sheaf/internal";
import type { ModelInput, TensorSpec } from "../../runners/contract/model-spec.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import type { Settings } from "../../settings/settings.ts";
import { tensorItem, tensorSchema } from "./tensor-items.ts";
import { textAt } from "./text-at.ts";

/** Turns a parsed JSON value into one item of a model. @throws {Problem} naming path, expected and got. */
export type InputParser = (value: unknown, path: string) => unknown;

export const largestFloat32 = 3.4028234663852886e38;

export function inputParser(input: ModelInput, maxTextChars: number): InputParser {
  switch (input.kind) {
    case "text":
      return (value, path) =>
        input.takesPairs === true && typeof value === "object"
          ? pairItem(value, path, maxTextChars)
          : textItem(value, path, maxTextChars);
    case "text-pair":
      return (value, path) => pairItem(value, path, maxTextChars);
    case "floats":
      return (value, path) => floatsItem(value, path, input.length);
    case "tensors":
      return (value, path) => tensorItem(value, path, input.tensors);
    case "json":
      return (value) => value;
  }
}

export function itemSchema(input: ModelInput, settings: Settings): Schema {
  switch (input.kind) {
    case "text":
      return input.takesPairs === true
        ? Type.Union([textSchema(settings), pairSchema(settings)])
        : textSchema(settings);
    case "text-pair":
      return pairSchema(settings);
    case "floats":
      return Type.Array(Type.Number({ minimum: -largestFloat32, maximum: largestFloat32 }), {
        minItems: input.length,
        maxItems: input.length,
      });
    case "tensors": {
      const named = Type.Object(
        Object.fromEntries(input.tensors.map((tensor) => [tensor.name, tensorSchema(tensor)])),
        { additionalProperties: false },
      );
      return input.tensors.length === 1 ? Type.Union([tensorSchema(input.tensors[0]!), named]) : named;
    }
    case "json":
      return Type.Unknown({ description: "An input of the model; GET /v1/models describes it." });
  }
}

const pairSchema = (settings: Settings): Schema =>
  Type.Object({ query: textSchema(settings), text: textSchema(settings) }, { additionalProperties: false });

export const textSchema = ({ maxTextChars }: Settings): Schema =>
  Type.String({ minLength: 1, maxLength: maxTextChars });

/** Whether a bare JSON object without `input` and `inputs` is itself an item of this model. */
export const takesObjects = (input: ModelInput): boolean => takesPairs(input) || input.kind === "tensors";

/** Whether an item of this model may be a pair of texts. */
export const takesPairs = (input: ModelInput): boolean =>
  input.kind === "text-pair" || (input.kind === "text" && input.takesPairs === true);

/** Whether an item is, or contains, JSON that the model gets unchanged. */
export const takesJson = (input: ModelInput): boolean =>
  input.kind === "json" || (input.kind === "tensors" && input.tensors.some(({ isJson }) => isJson === true));

/** The type of an item, in words, for messages and model lists. */
export function describeInput(input: ModelInput): string {
  if (input.kind === "text") return `a text that is not empty${takesPairs(input) ? `, or ${pair}` : ""}`;
  if (input.kind === "text-pair") return pair;
  if (input.kind === "json") return "any JSON value";
  if (input.kind === "floats") return `an array of ${input.length} numbers`;
  return input.tensors.map(describeTensor).join(", ");
}

const pair = `{ "query": text, "text": text }`;

const describeTensor = ({ name, datatype, shape, isJson }: TensorSpec): string =>
  isJson === true
    ? `${name}: any JSON value`
    : `${name}: ${datatype} [${shape.map((length) => length ?? "any").join(", ")}]`;

function pairItem(value: unknown, path: string, maxChars: number): object {
  const { query, text } = objectOf(value, path, pair, ["query", "text"]);
  return { query: textItem(query, join(path, "query"), maxChars), text: textItem(text, join(path, "text"), maxChars) };
}

function textItem(value: unknown, path: string, maxChars: number): string {
  const text = textAt(value, path);
  if (text === "") throw invalid(path, "a text that is not empty", text);
  if (text.length > maxChars) throw invalid(path, `a text of at most ${maxChars} characters (MAX_TEXT_CHARS)`, text);
  return text;
}

/** Checks type and finiteness and copies, all in one pass. */
function floatsItem(value: unknown, path: string, length: number): Float32Array {
  if (value instanceof Float32Array && value.length === length) return value;
  if (!Array.isArray(value)) throw invalid(path, `an array of ${length} numbers`, value);
  if (value.length !== length) throw invalid(path, `an array of ${length} numbers`, value);
  const floats = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    const number: unknown = value[i];
    // Also refuses NaN, and numbers beyond float32, which would become Infinity in the model.
    if (typeof number !== "number" || !(number >= -largestFloat32 && number <= largestFloat32))
      throw invalid(`${path}[${i}]`, "a finite float32 number", number);
    floats[i] = number;
  }
  return floats;
}

/** @throws {Problem} 422 for anything but an object */
export function objectAt(value: unknown, path: string, expected: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(path, expected, value);
  return value as Record<string, unknown>;
}

/** @throws {Problem} 422 naming the first unknown key and the nearest known one; `isNothing` may let a key pass. */
export function checkKeys(
  value: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  isNothing: (key: string) => boolean = () => false,
): void {
  const unknown = Object.keys(value).find((key) => !keys.includes(key) && !isNothing(key));
  if (unknown === undefined) return;
  throw new Problem("INVALID_INPUT", `${describe(unknown)} is not known here; ${nearestOf(unknown, keys)}`, {
    param: unknown.slice(0, 100),
  });
}

/** The object at `path`, which may have only these keys. */
export function objectOf(
  value: unknown,
  path: string,
  expected: string,
  keys: readonly string[],
): Record<string, unknown> {
  const object = objectAt(value, path, expected);
  checkKeys(object, keys);
  return object;
}

export const join = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);
