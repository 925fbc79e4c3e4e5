import { costs } from "../../shared/costs.ts";

/** Any value as JSON. */
export const jsonText = (value: unknown): string => JSON.stringify(value, plainArrays) ?? "null";

/** Typed arrays as arrays, 64-bit integers as numbers: checkResult() has refused values that a number cannot hold. */
function plainArrays(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  return isNumbers(value) ? Array.from(value) : value;
}

const isNumbers = (value: unknown): value is ArrayLike<unknown> & { slice(from: number, to: number): unknown } =>
  ArrayBuffer.isView(value) && !(value instanceof DataView);

/** A value whose JSON is written piece by piece, so that it does not block the thread for long. */
export interface LargeJson {
  pieces(): Generator<string>;
}

/** The JSON of a value: a text, unless it is large. */
export const jsonPart = (value: unknown): string | LargeJson =>
  sizeOf(value, mostSize) < mostSize ? jsonText(value) : { pieces: () => piecesOf(value) };

/** Values in a piece; 16 characters of a text count as one. */
const mostSize = costs.largeBytes / 16;

/** Number of values that `value` contains, counted up to `most`. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === "string") return 1 + value.length / 16;
  if (typeof value !== "object" || value === null) return 1;
  if (isNumbers(value)) return 1 + value.length;
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let size = 1;
  for (let i = 0; i < parts.length && size < most; i++)
    size += typeof parts[i] === "number" ? 1 : sizeOf(parts[i], most - size);
  return size;
}

function* piecesOf(value: unknown): Generator<string> {
  const isWhole = typeof (value as { toJSON?: unknown } | undefined | null)?.toJSON === "function";
  if (isWhole || sizeOf(value, mostSize) < mostSize) yield jsonText(value);
  else if (typeof value === "string") yield* piecesOfText(value);
  else if (isNumbers(value) || Array.isArray(value)) yield* piecesOfList(value);
  else yield* piecesOfObject(value as Readonly<Record<string, unknown>>);
}

function* piecesOfText(text: string): Generator<string> {
  yield '"';
  for (let from = 0, to = 0; from < text.length; from = to) {
    to = from + costs.largeBytes / 4;
    // Not between the halves of a surrogate pair.
    if (isHighSurrogate(text.charCodeAt(to - 1))) to++;
    yield JSON.stringify(text.slice(from, to)).slice(1, -1);
  }
  yield '"';
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00;

/** Joins small elements and splits large ones. */
function* piecesOfList(list: ArrayLike<unknown> & { slice(from: number, to: number): unknown }): Generator<string> {
  yield "[";
  for (let from = 0, to = 0; from < list.length; from = to) {
    if (from > 0) yield ",";
    for (let size = 0; to < list.length; to++) {
      size += sizeOf(list[to], mostSize - size);
      if (size >= mostSize) break;
    }
    if (to > from) yield jsonText(list.slice(from, to)).slice(1, -1);
    else yield* piecesOf(list[to++]);
  }
  yield "]";
}

function* piecesOfObject(object: Readonly<Record<string, unknown>>): Generator<string> {
  let before = "{";
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* piecesOf(value);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}
