import type { ServedModel } from "../models/served-model.ts";
import { isTruncated } from "../codec/outputs.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import { flagOf, type Fields } from "./fields.ts";

/** The fields of TEI's routes about texts of too many tokens. */
export const truncationKeys: readonly string[] = ["truncate", "truncation_direction"];

/** Whether texts of too many tokens are cut; by default they are. @throws {Problem} 422 */
export function truncates(fields: Fields): boolean {
  // Litellm sends it with every request. Texts are cut at their end: "left" would give other results.
  const { truncation_direction: direction = "right" } = fields;
  if (typeof direction !== "string" || direction.toLowerCase() !== "right")
    throw invalid("truncation_direction", '"right": texts are cut at their end', direction);
  return flagOf(fields, "truncate", true);
}

/**
 * A worker counts the tokens of a text: only its results tell that one was cut. `pathOf` names the text of a result, `truncate`
 * is the field as the caller has it.
 * @throws {Problem} 422 naming the first text that was cut
 */
export function refuseTruncated(
  outputs: readonly unknown[],
  { definition: { input } }: ServedModel,
  pathOf: (index: number) => string,
  truncate = "false",
): void {
  const index = outputs.findIndex(isTruncated);
  if (index < 0) return;
  const path = pathOf(index);
  const most = "maxTokens" in input && input.maxTokens !== undefined ? `${input.maxTokens} tokens` : "the model takes";
  const withQuery = input.kind === "text-pair" ? ", with the query," : "";
  const message = `${path} has more than ${most}${withQuery} and truncate is ${truncate}.`;
  throw new Problem("INVALID_INPUT", message, { param: path });
}

/** A caller's limit in tokens. */
export interface TokenLimit {
  /** Path of the field that sets it. */
  readonly path: string;
  readonly tokens: number;
}

/** Refuses a limit below the model's own: texts are cut at that one. @throws {Problem} 422 */
export function checkTokenLimit(limit: TokenLimit | undefined, { definition: { input } }: ServedModel): void {
  if (limit === undefined) return;
  const most = ("maxTokens" in input ? input.maxTokens : undefined) ?? Infinity;
  if (limit.tokens >= most) return;
  const expected =
    most === Infinity ? "absent: the model cuts no text" : `at least ${most}, where the model cuts texts`;
  throw invalid(limit.path, expected, limit.tokens);
}
