import { wholeUnicode } from "../../http/bodies/changed-values.ts";
import { invalid } from "../../problems/problem.ts";

/** The value as a text. @throws {Problem} 422, also for a lone surrogate, which UTF-8 would turn into another character. */
export function textAt(value: unknown, path: string): string {
  if (typeof value !== "string") throw invalid(path, "a text", value);
  if (!value.isWellFormed()) throw invalid(path, wholeUnicode, value);
  return value;
}
