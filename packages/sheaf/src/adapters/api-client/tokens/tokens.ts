import { BatcherError } from "../../../core/contract/errors.ts";
import { describe } from "../../../shared/describe.ts";

/**
 * About how many tokens a text has: three ASCII characters or one other UTF-16 unit to a token. Byte-pair encodings take
 * 3.5 to 5 characters of English prose to a token, about 3 of code, 1 to 1.5 of Chinese: the estimate is rather too high,
 * so that a batch stays within the API's limit. An array of token ids counts as it is.
 */
export function estimateTokens(input: string | ArrayLike<number>): number {
  if (typeof input !== "string") return Math.max(1, input.length);
  let others = 0;
  for (let i = 0; i < input.length; i++) if (input.charCodeAt(i) > 127) others++;
  return Math.max(1, Math.ceil((input.length - others) / 3) + others);
}

/**
 * Splits a whole number in proportion to weights, into whole numbers that add up to it (largest remainder): a request's tokens
 * over its callers. Equal parts where the weights are all 0.
 */
export function split(total: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((a, b) => a + b, 0);
  const exact = weights.map((weight) => (sum > 0 ? (total * weight) / sum : total / weights.length));
  const parts = exact.map((part) => Math.floor(part));
  const left = Math.round(total - parts.reduce((a, b) => a + b, 0));
  const byRemainder = [...exact.keys()].sort((a, b) => exact[b]! - parts[b]! - (exact[a]! - parts[a]!));
  for (const index of byRemainder.slice(0, left)) parts[index]!++;
  return parts;
}

/** Tokens of an item that must be a text. @throws {BatcherError} `INVALID_INPUT` for anything else. */
export function weighText(text: string, weigh: (text: string) => number, name: string): number {
  if (typeof text === "string") return weigh(text);
  throw new BatcherError("INVALID_INPUT", `${name}: an input is a text; got ${describe(text)}.`);
}
