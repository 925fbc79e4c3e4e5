import type { VectorRanges } from "../contract/model-spec.ts";
import { readJson } from "./read-json.ts";

/** The file of a folder that `sheaf ranges` writes: by length of the vectors, the range of each number. */
export const rangesFile = "quantization_ranges.json";

/** The ranges in a folder; none where it has no such file. @throws {Error} naming the file and what is wrong in it. */
export function readRanges(folder: string): Readonly<Record<string, VectorRanges>> | undefined {
  const file = readJson(folder, rangesFile) as Readonly<Record<string, Partial<VectorRanges> | null>> | undefined;
  if (file === undefined) return undefined;
  if (typeof file !== "object" || file === null || Array.isArray(file)) throw wrong(folder, "is not an object");
  for (const [length, ranges] of Object.entries(file)) {
    const { min, max } = ranges ?? {};
    const hasLength = (numbers: unknown): numbers is readonly number[] =>
      Array.isArray(numbers) && numbers.length === Number(length) && numbers.every(Number.isFinite);
    if (!hasLength(min) || !hasLength(max) || min.some((least, i) => least > max[i]!))
      throw wrong(
        folder,
        `must have under ${JSON.stringify(length)} as many numbers in min, and as many not below them in max`,
      );
  }
  return file as Readonly<Record<string, VectorRanges>>;
}

const wrong = (folder: string, what: string): Error => new Error(`${folder}/${rangesFile} ${what}.`);

/** Widens ranges to include a vector; the first vector is its own range. */
export function widened(ranges: VectorRanges | undefined, vector: Float32Array): VectorRanges {
  if (ranges === undefined) return { min: Array.from(vector), max: Array.from(vector) };
  return {
    min: ranges.min.map((least, i) => Math.min(least, vector[i]!)),
    max: ranges.max.map((most, i) => Math.max(most, vector[i]!)),
  };
}
