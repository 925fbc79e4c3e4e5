// Spelt out: a user's compiler reads this file, and may have no types of Node.
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

export interface TypedArrayConstructor {
  new (length: number): TypedArray;
  new (buffer: ArrayBuffer, byteOffset?: number, length?: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
  readonly prototype: TypedArray;
  readonly name: string;
}

/** Typed arrays that travel as their bytes. The index is the kind on the wire: new ones go last. */
export const typedArrays: readonly TypedArrayConstructor[] = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
];

/** Element types of a tensor that a worker command takes or returns. A `bool` is a byte, 0 or 1. */
export type TensorDtype =
  "float32" | "float64" | "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64" | "bool";

export interface ElementType {
  /** In the Open Inference Protocol. */
  readonly datatype:
    "FP16" | "FP32" | "FP64" | "INT8" | "UINT8" | "INT16" | "UINT16" | "INT32" | "UINT32" | "INT64" | "UINT64" | "BOOL";
  /** Holds the elements, each of `BYTES_PER_ELEMENT`. */
  readonly array: TypedArrayConstructor;
  /** Of an element in JSON, where integers are exact up to 2^53 − 1. */
  readonly minimum: number;
  readonly maximum: number;
}

/**
 * Element types of tensors, by their names in NumPy, ONNX Runtime and the worker protocol. Elements of float16 are their
 * bits, as not every Node has a `Float16Array`; workers in other languages do not take it.
 */
export const elementTypes: Readonly<Record<TensorDtype | "float16", ElementType>> = {
  float16: { datatype: "FP16", array: Uint16Array, minimum: -65_504, maximum: 65_504 },
  float32: { datatype: "FP32", array: Float32Array, minimum: -3.4028234663852886e38, maximum: 3.4028234663852886e38 },
  float64: { datatype: "FP64", array: Float64Array, minimum: -Number.MAX_VALUE, maximum: Number.MAX_VALUE },
  int8: { datatype: "INT8", array: Int8Array, minimum: -128, maximum: 127 },
  uint8: { datatype: "UINT8", array: Uint8Array, minimum: 0, maximum: 255 },
  int16: { datatype: "INT16", array: Int16Array, minimum: -(2 ** 15), maximum: 2 ** 15 - 1 },
  uint16: { datatype: "UINT16", array: Uint16Array, minimum: 0, maximum: 2 ** 16 - 1 },
  int32: { datatype: "INT32", array: Int32Array, minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  uint32: { datatype: "UINT32", array: Uint32Array, minimum: 0, maximum: 2 ** 32 - 1 },
  int64: {
    datatype: "INT64",
    array: BigInt64Array,
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  },
  uint64: { datatype: "UINT64", array: BigUint64Array, minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  bool: { datatype: "BOOL", array: Uint8Array, minimum: 0, maximum: 1 },
};
