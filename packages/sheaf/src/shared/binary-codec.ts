import { typedArrays } from "./element-types.ts";

/** How items and results become bytes. Both sides of a queue must use the same. */
export interface Codec {
  /** @throws {TypeError} for a value that it cannot carry. */
  encode(value: unknown): Uint8Array;
  decode(bytes: Uint8Array): unknown;
}

const Kind = { none: 0, text: 1, floats: 2, json: 3, jsonWithBinary: 4 } as const;
const kindBytes = [0, 1, 2, 3, 4].map((kind) => Uint8Array.of(kind));

type TypedArray = ArrayBufferView & { readonly length: number };

/** Begins a text that stands in JSON for a typed array, for a BigInt, or for a text that begins so itself. */
const binaryPrefix = "\u0000binary:";
const bigInt = "n";
const ownText = "t";

const encoder = new TextEncoder();
/** A text may begin with U+FEFF, which would be taken for a mark of the byte order. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * The default codec: JSON values, BigInts, and typed arrays at any depth as their bytes (little-endian, as every machine that
 * runs Node has them). A text or a Float32Array alone costs one copy and no JSON.
 */
export const binaryCodec: Codec = {
  encode(value) {
    const parts = encodedParts(value);
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.byteLength;
    }
    return bytes;
  },

  decode(bytes) {
    const rest = bytes.subarray(1);
    switch (bytes[0]) {
      case Kind.none:
        return undefined;
      case Kind.text:
        return decoder.decode(rest);
      case Kind.floats:
        return new Float32Array(copyOf(rest));
      case Kind.json:
        return JSON.parse(decoder.decode(rest)) as unknown;
      case Kind.jsonWithBinary:
        return decodeParts(rest);
      default:
        throw new TypeError(`Unknown kind of value: ${bytes[0]}. Both sides of a queue must use the same codec.`);
    }
  },
};

/** What stands in JSON for a value that it cannot say; undefined for others. */
function markOf(original: unknown, held: unknown, parts: TypedArray[]): string | undefined {
  if (typeof held === "bigint") return `${binaryPrefix}${bigInt}:${held}`;
  if (typeof held === "string" && held.startsWith(binaryPrefix)) return `${binaryPrefix}${ownText}:${held}`;
  const kind = ArrayBuffer.isView(original) ? typedArrays.findIndex((type) => original instanceof type) : -1;
  if (kind < 0) return undefined;
  const array = original as TypedArray;
  parts.push(array);
  return `${binaryPrefix}${kind}:${array.length}`;
}

// Typed arrays are leaves: the reviver meets them in the order in which they were written.
function decodeParts(bytes: Uint8Array): unknown {
  const jsonBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  let at = 4 + jsonBytes;
  return JSON.parse(decoder.decode(bytes.subarray(4, at)), (_key, value: unknown) => {
    if (typeof value !== "string" || !value.startsWith(binaryPrefix)) return value;
    const [kind, length] = value.slice(binaryPrefix.length).split(":", 2);
    if (kind === bigInt) return BigInt(length!);
    if (kind === ownText) return value.slice(binaryPrefix.length + 2);
    const Type = typedArrays[Number(kind)]!;
    const from = at;
    at += Number(length) * Type.BYTES_PER_ELEMENT;
    return new Type(copyOf(bytes.subarray(from, at)));
  }) as unknown;
}

/** The bytes of a value in pieces, some of them views of it. @throws {TypeError} for a value that it cannot carry. */
export function encodedParts(value: unknown): readonly Uint8Array[] {
  if (typeof value === "string") return [kindBytes[Kind.text]!, encoder.encode(value)];
  if (value instanceof Float32Array) return [kindBytes[Kind.floats]!, bytesOf(value)];
  if (value === undefined) return [kindBytes[Kind.none]!];
  const arrays: TypedArray[] = [];
  let hasMarks = false;
  const json = JSON.stringify(value, function (this: unknown, key: string, held: unknown) {
    const mark = markOf((this as Record<string, unknown>)[key], held, arrays);
    hasMarks ||= mark !== undefined;
    return mark ?? held;
  });
  if (json === undefined) throw new TypeError(`A ${typeof value} cannot be sent to another machine.`);
  const text = encoder.encode(json);
  if (!hasMarks) return [kindBytes[Kind.json]!, text];
  return [kindBytes[Kind.jsonWithBinary]!, bytesOf(Uint32Array.of(text.byteLength)), text, ...arrays.map(bytesOf)];
}

const bytesOf = (array: TypedArray): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** A buffer of its own: aligned, and no result keeps a whole message alive. */
const copyOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;
