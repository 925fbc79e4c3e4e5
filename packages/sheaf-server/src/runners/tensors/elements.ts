import { elementTypes, type ElementType } from "sheaf/internal/node";
import type { TensorDatatype } from "../contract/model-spec.ts";
import { halfOf, numberOfHalf } from "./half.ts";

/** A tensor of numbers in row order: those of FP16 are their bits, of BOOL 0 and 1. */
export type NumberArray =
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array;

export interface NumberArrayConstructor {
  new (length: number): NumberArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): NumberArray;
  readonly BYTES_PER_ELEMENT: number;
}

/** An element type as JSON, bytes and models have it. */
export interface Element extends Omit<ElementType, "array"> {
  /** In ONNX Runtime and the worker protocol. */
  readonly dtype: string;
  readonly array: NumberArrayConstructor;
  readonly isWhole: boolean;
  /** A JSON value of it, in words. */
  readonly expected: string;
  /** Whether a JSON value is one. */
  holds(value: unknown): boolean;
  /** A JSON value, or any number, as an element of `array`. Undefined where that is the value itself. */
  readonly stored?: ((value: unknown) => number | bigint) | undefined;
  /** An element of `array` as a JSON value. Undefined where that is the element itself. */
  readonly shown?: ((element: number | bigint) => unknown) | undefined;
}

/** The element types of numbers: BYTES has texts. */
export type NumberType = ElementType["datatype"];

/** Every element type of numbers, by its name in the Open Inference Protocol. */
export const elements: Readonly<Record<NumberType, Element>> = Object.fromEntries(
  Object.entries(elementTypes).map(([dtype, type]) => [type.datatype, elementOf(dtype, type)]),
) as Record<NumberType, Element>;

export function shownElements(data: ArrayLike<number | bigint>, datatype: NumberType): unknown[] {
  const { shown } = elements[datatype];
  return shown === undefined ? Array.from(data) : Array.from(data, shown);
}

/** The datatype of one of ONNX Runtime's element types; undefined for one that is not served, such as bfloat16. */
export function datatypeOf(runtimeType: string): TensorDatatype | undefined {
  return runtimeType === "string" ? "BYTES" : elementTypes[runtimeType as keyof typeof elementTypes]?.datatype;
}

function elementOf(dtype: string, type: ElementType): Element {
  const { datatype, minimum, maximum } = type;
  const array = type.array as unknown as NumberArrayConstructor;
  const shared = { dtype, datatype, array, minimum, maximum };
  if (datatype === "BOOL") {
    const holds = (value: unknown): boolean => typeof value === "boolean";
    return { ...shared, isWhole: true, expected: "true or false", holds, stored: Number, shown: Boolean };
  }
  if (datatype.startsWith("FP")) {
    const holds = (value: unknown): boolean => typeof value === "number" && value >= minimum && value <= maximum;
    const isHalf = datatype === "FP16";
    // Halves may be too large for their type although they are finite, which surprises who sends them.
    const expected = isHalf ? `a number from ${minimum} to ${maximum}` : "a finite number";
    const ends = isHalf ? { stored: halfOf as Element["stored"], shown: numberOfHalf as Element["shown"] } : {};
    return { ...shared, isWhole: false, expected, holds, ...ends };
  }
  const holds = (value: unknown): boolean =>
    Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum;
  const isBig = datatype.endsWith("64");
  const ends = isBig ? { stored: BigInt as Element["stored"], shown: Number } : {};
  return { ...shared, isWhole: true, expected: `an integer from ${minimum} to ${maximum}`, holds, ...ends };
}
