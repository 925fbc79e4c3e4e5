import { describe } from "../../../shared/describe.ts";
/** How values of a column are written as PostgreSQL's own text. */
export interface Encoding {
  /** Of an element where `isArray`. */
  readonly form: "json" | "bytes" | "vector" | "text";
  readonly isArray: boolean;
  readonly dates: "local" | "utc";
  /** For messages: `"column" (type)`. */
  readonly label: string;
}

/**
 * A JavaScript value as the text that PostgreSQL reads for its type; null and undefined are NULL. JSON columns take any
 * value that JSON can hold, and a string is a JSON string there. Bytes are Uint8Array or ArrayBuffer, vectors arrays
 * of numbers or typed arrays, Dates become timestamps as the user's driver writes them; everything else is its String().
 * @throws {TypeError} a value that the column's type has no text for.
 */
export function encode(value: unknown, encoding: Encoding): string | null {
  if (value === null || value === undefined) return null;
  const { form, isArray, label } = encoding;
  if (isArray && typeof value !== "string") {
    if (!isList(value)) throw new TypeError(`${label} takes an array, got ${describe(value)}`);
    return arrayText(value, { ...encoding, isArray: false });
  }
  if (form === "json") return jsonText(value, label);
  if (typeof value === "string") return value;
  if (form === "vector" && isList(value)) return vectorText(value, label);
  return plainText(value, encoding);
}

/** A one-dimensional array of texts in PostgreSQL's array syntax. */
export function arrayLiteral(texts: readonly (string | null)[]): string {
  return `{${texts.map((text) => (text === null ? "NULL" : quoteElement(text))).join(",")}}`;
}

const quoteElement = (text: string): string => `"${/["\\]/.test(text) ? text.replaceAll(/["\\]/g, "\\$&") : text}"`;

/** Nested arrays become dimensions, except where elements are JSON arrays or vectors themselves. */
function arrayText(values: ArrayLike<unknown>, encoding: Encoding): string {
  const parts = Array.from(values, (value) => {
    if (Array.isArray(value) && (encoding.form === "text" || encoding.form === "bytes")) {
      return arrayText(value, encoding);
    }
    const text = encode(value, encoding);
    return text === null ? "NULL" : quoteElement(text);
  });
  return `{${parts.join(",")}}`;
}

function jsonText(value: unknown, label: string): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`${label} takes a JSON value, got ${describe(value)}`);
  return text;
}

function vectorText(values: ArrayLike<unknown>, label: string): string {
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] !== "number" || !Number.isFinite(values[i])) {
      throw new TypeError(`${label} takes finite numbers, got ${String(values[i])} at ${i}`);
    }
  }
  return `[${Array.prototype.join.call(values, ",")}]`;
}

function plainText(value: unknown, { form, dates, label }: Encoding): string {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (typeof value !== "object" || value === null) throw new TypeError(`${label} cannot hold ${describe(value)}`);
  if (value instanceof Date) return dateText(value, dates, label);
  if (value instanceof ArrayBuffer) return hexText(new Uint8Array(value));
  if (value instanceof Uint8Array && form === "bytes") return hexText(value);
  // Decimals, UUIDs, URLs, Temporal and the like: objects with a text of their own.
  const ownText = isList(value) ? undefined : textOf(value);
  if (typeof ownText !== "string" || ownText.startsWith("[object ")) {
    throw new TypeError(`${label} cannot hold ${describe(value)}; pass it as PostgreSQL would write it, in a string`);
  }
  return ownText;
}

const hexText = (bytes: Uint8Array): string =>
  `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;

function dateText(date: Date, dates: "local" | "utc", label: string): string {
  const year = dates === "utc" ? date.getUTCFullYear() : date.getFullYear();
  if (!(year >= 1 && year <= 9999)) {
    throw new TypeError(`${label} takes a Date of the years 1 to 9999, got ${String(date)}; pass others as a string`);
  }
  if (dates === "utc") return date.toISOString();
  // Local time with its offset: a column with time zone reads the offset, one without keeps the wall clock.
  const offsetMinutes = -date.getTimezoneOffset();
  const wall = new Date(date.getTime() + offsetMinutes * 60_000).toISOString().slice(0, -1);
  const [sign, minutes] = [offsetMinutes < 0 ? "-" : "+", Math.abs(offsetMinutes)];
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${wall}${sign}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

const textOf = (value: object): string => (value as { toString: () => string }).toString();

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
