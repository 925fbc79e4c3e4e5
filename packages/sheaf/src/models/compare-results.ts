/**
 * How far each output of a model differs between two runs of the same items: 0 not at all, 0.05 by 5 % of the output's
 * largest value, Infinity where a whole number, a text, a length or a type changed.
 */
export type OutputDifferences = ReadonlyMap<string, number>;

/**
 * The smallest scale of differences. Results that are all zero have none of their own; below this, differences are those
 * of rounding.
 */
const smallestScale = 1e-5;

/** Deeper values are ignored, so that a value that contains itself does not loop forever. */
const deepest = 32;

/** The values of one output: those at one path, the entries of its arrays together. */
interface Output {
  /** The largest absolute value on either side. */
  scale: number;
  difference: number;
  /** For untyped numbers: whether all of them so far are whole. */
  isWhole: boolean;
  hasChanged: boolean;
}

/**
 * Compares results of any type, output by output: an output is a name in an object, and all entries of its arrays. The
 * scale of an output is its largest value in `results` and in the pairs.
 * @param pairs the result of an item in one run, and in another
 * @param results more results of the model, for the scale alone
 * @throws {Error} a result that is an `Error`.
 */
export function compareResults(
  pairs: readonly (readonly [unknown, unknown])[],
  results: readonly unknown[] = [],
): OutputDifferences {
  const outputs = new Map<string, Output>();
  for (const result of results) compare(result, result, "", outputs, 0);
  for (const [one, other] of pairs) compare(one, other, "", outputs, 0);
  return new Map(Array.from(outputs, ([path, output]) => [path, rateOf(output)]));
}

function rateOf({ scale, difference, isWhole, hasChanged }: Output): number {
  if (hasChanged || (isWhole && difference > 0)) return Infinity;
  return difference / Math.max(scale, smallestScale);
}

function compare(one: unknown, other: unknown, path: string, outputs: Map<string, Output>, depth: number): void {
  if (one instanceof Error) throw one;
  if (other instanceof Error) throw other;
  if (depth > deepest) return;
  const output = outputAt(path, outputs);
  if (typeof one === "number" && typeof other === "number") {
    output.isWhole &&= Number.isSafeInteger(one) && Number.isSafeInteger(other);
    return compareNumbers([one], [other], output);
  }
  if (isFloats(one) && isFloats(other)) {
    output.isWhole = false;
    return compareNumbers(one, other, output);
  }
  const [entries, others] = [entriesOf(one), entriesOf(other)];
  if (entries === undefined || others === undefined) {
    output.hasChanged ||= !Object.is(one, other);
    return;
  }
  const isList = isListLike(one);
  output.hasChanged ||= isList !== isListLike(other) || entries.length !== others.length;
  if (output.hasChanged) return;
  entries.forEach(([key, value], i) => {
    const [otherKey, otherValue] = others[i]!;
    if (key !== otherKey) output.hasChanged = true;
    else compare(value, otherValue, isList ? path : `${path}.${key}`, outputs, depth + 1);
  });
}

function compareNumbers(one: ArrayLike<number>, other: ArrayLike<number>, output: Output): void {
  output.hasChanged ||= one.length !== other.length;
  if (output.hasChanged) return;
  for (let i = 0; i < one.length; i++) {
    const [a, b] = [one[i]!, other[i]!];
    if (Number.isFinite(a) && Number.isFinite(b)) {
      output.scale = Math.max(output.scale, Math.abs(a), Math.abs(b));
      output.difference = Math.max(output.difference, Math.abs(a - b));
    } else output.hasChanged ||= !Object.is(a, b);
  }
}

function outputAt(path: string, outputs: Map<string, Output>): Output {
  const known = outputs.get(path);
  if (known !== undefined) return known;
  const output = { scale: 0, difference: 0, isWhole: true, hasChanged: false };
  outputs.set(path, output);
  return output;
}

const floatArrays: ReadonlySet<string> = new Set(["Float16Array", "Float32Array", "Float64Array"]);

/** By name, because not every version of Node has a Float16Array. */
function isFloats(value: unknown): value is Float32Array {
  return ArrayBuffer.isView(value) && floatArrays.has(value.constructor.name);
}

const isListLike = (value: unknown): boolean =>
  Array.isArray(value) || ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof Set;

/** The entries of a value, by key; undefined for one without any. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (value instanceof Map) return Array.from(value, ([key, held]) => [String(key), held] as const);
  if (value instanceof Set) return Array.from(value, (held) => ["", held] as const);
  if (value instanceof Date) return [["time", value.getTime()]];
  if (value instanceof ArrayBuffer) return Array.from(new Uint8Array(value), (byte) => ["", byte] as const);
  if (value instanceof DataView)
    return entriesOf(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength));
  if (ArrayBuffer.isView(value))
    return Array.from(value as unknown as ArrayLike<unknown>, (held) => ["", held] as const);
  if (Array.isArray(value)) return value.map((held: unknown) => ["", held] as const);
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
}
