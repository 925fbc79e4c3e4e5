import { errorHints, fieldsOf, headersOf, retryAfterMsOf } from "./api-error.ts";
import type { HeadersLike } from "../../limits/told-limits.ts";
import type { NamedLimit, RequestSize } from "../../limits/request-sizes.ts";

/** A reply with status 429. */
export interface Refusal {
  readonly headers: HeadersLike | undefined;
  /** Undefined if the service names no time. */
  readonly retryAfterMs: number | undefined;
  /** A used-up quota or a daily limit, for which the wait would be hours. */
  readonly isFinal: boolean;
}

const usedUp = /insufficient_quota|billing_hard_limit/;
const longPeriod = /\b(per|a|each) (day|month)\b|\b[RT]PD\b|\b(daily|monthly)\b/i;

/** The refusal in a 429; undefined for any other error. `heard`: the reply's headers, if the client hides them. */
export function refusalOf(error: unknown, maxPauseMs: number, heard?: HeadersLike): Refusal | undefined {
  if (errorHints(error).status !== 429) return undefined;
  const headers = headersOf(error) ?? heard;
  const named = fieldsOf(error)["retryAfterMs"];
  const retryAfterMs = typeof named === "number" ? named : retryAfterMsOf(headers, Infinity);
  const { code, type, message } = wordsOf(error);
  const isFinal = usedUp.test(`${code} ${type}`) || longPeriod.test(message) || (retryAfterMs ?? 0) > maxPauseMs;
  return { headers, retryAfterMs, isFinal };
}

const longestWords = 2000;
const aboutTokens = /token/i;
const aboutItems = /\b(inputs?|texts?|items?|instances?|documents?|elements?|entries|batch ?size)\b/i;
/** A smaller number is not a limit of a request. */
const fewestTokens = 16;
/** A service's count is at most this many times an estimate. */
const farthestCount = 5;

/**
 * Finds a limit in the message of a 400, 413 or 422: a number smaller than the refused size. It says where to cut a request first,
 * although it may be the limit of a single text.
 */
export function namedLimitOf(error: unknown, { items, tokens }: RequestSize): NamedLimit | undefined {
  const { message } = wordsOf(error);
  const { status } = errorHints(error);
  // Probably a proxy's error page.
  if (message.length > longestWords || /<html|<!doctype/i.test(message)) return undefined;
  if (!aboutTokens.test(message) && !aboutItems.test(message)) return undefined;
  const numbers = [...message.matchAll(/(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w,]*\d)/g)]
    .map(([text]) => Number(text.replaceAll(",", "")))
    .filter((number) => number !== status)
    .sort((a, b) => b - a);
  if (!aboutTokens.test(message)) {
    const most = numbers.find((number) => number >= 1 && number < items);
    return most === undefined ? undefined : { dimension: "items", most };
  }
  // Of two numbers the larger is the service's count of the request.
  const [counted, most] = numbers.filter((number) => number >= fewestTokens && number < farthestCount * tokens);
  if (most !== undefined && most < counted!) return { dimension: "tokens", most, counted };
  return counted === undefined || counted >= tokens ? undefined : { dimension: "tokens", most: counted };
}

/** Equal for errors whose messages differ only in numbers. */
export function signatureOf(error: unknown): string {
  const { code, message } = wordsOf(error);
  return `${errorHints(error).status} ${code} ${message.slice(0, longestWords).replaceAll(/\d+/g, "")}`;
}

/** The code, type and message of an error, wherever its client puts them. */
export function wordsOf(error: unknown): { readonly code: string; readonly type: string; readonly message: string } {
  const { error: inner, data, response, responseBody, code, type, message } = fieldsOf(error);
  const bodies = [inner, fieldsOf(data)["error"], fieldsOf(fieldsOf(response)["data"])["error"], data, fieldsOf(response)["data"]]; // prettier-ignore
  const texts = bodies.map(fieldsOf);
  const textOf = (own: unknown, name: string): string =>
    [own, ...texts.map((body) => body[name])].filter((value) => typeof value === "string").join(" ");
  return {
    code: textOf(code, "code"),
    type: textOf(type, "type"),
    message: `${textOf(message, "message")} ${textOf(responseBody, "detail")}`,
  };
}
