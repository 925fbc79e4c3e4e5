import type { ModelInput } from "../../runners/contract/model-spec.ts";
import type { Settings } from "../../settings/settings.ts";

/**
 * The most values that a valid JSON request to a model may have: those of its inputs, and of its other fields. Infinity
 * where an input may have any number.
 */
export const mostValues = (input: ModelInput, { maxInputs }: Settings): number =>
  maxInputs * valuesOf(input) + otherValues;

/** A text may stand in a document with other fields, which are ignored. */
const valuesOfText = 100;
/** Also the token ids of a long text: their refusal says what to do. */
const otherValues = 10_000;

function valuesOf(input: ModelInput): number {
  switch (input.kind) {
    case "text":
    case "text-pair":
      return valuesOfText;
    case "floats":
      return input.length;
    case "tensors":
      return input.tensors.reduce((sum, { shape, isJson }) => sum + (isJson === true ? Infinity : sizeOf(shape)), 0);
    case "json":
      return Infinity;
  }
}

const sizeOf = (shape: readonly (number | null)[]): number =>
  shape.reduce<number>((product, axis) => product * (axis ?? Infinity), 1);

/** The same for a route that takes texts, whatever its model. */
export const mostValuesOfTexts = (settings: Settings): number => mostValues({ kind: "text" }, settings);
