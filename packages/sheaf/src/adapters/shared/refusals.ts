import { errorHints, fieldsOf, headersOf, retryAfterMsOf } from "./api-error.ts";
import type { HeadersLike } from "../../limits/told-limits.ts";
import type { NamedCap } from "../../limits/size-caps.ts";

/** A 429. */
export interface Refusal {
  readonly headers: HeadersLike | undefined;
  /** Milliseconds; undefined where the service names no time. */
  readonly retryAfterMs: number | undefined;
  /** A quota that is used up, or a limit per day: to wait for it would be to wait for hours. */
  readonly isFinal: boolean;
}

const usedUp = /insufficient_quota|billing_hard_limit/;
const longPeriod = /\b(per|a|each) (day|month)\b|\b[RT]PD\b|\b(daily|monthly)\b/i;

/** Undefined for any other error. `heard`: the headers of the reply, where its client hides them. */
export function refusalOf(error: unknown, maxPauseMs: number, heard?: HeadersLike): Refusal | undefined {
  if (errorHints(error).status !== 429) return undefined;
  const headers = headersOf(error) ?? heard;
  const named = fieldsOf(error)["retryAfterMs"];
  const retryAfterMs = typeof named === "number" ? named : retryAfterMsOf(headers, Infinity);
  const { code, type, message } = wordsOf(error);
  const isFinal = usedUp.test(`${code} ${type}`) || longPeriod.test(message) || (retryAfterMs ?? 0) > maxPauseMs;
  return { headers, retryAfterMs, isFinal };
}

const capOfItems = [
  /(?:at most|max(?:imum)?(?: (?:number|length|size|batch|allowed|of|is|texts|inputs|items))*|batch size limit is|up to|limit of)[^\d]{0,24}(\d{1,7})(?! ?tokens)/i,
];
const capOfTokens = [/max(?:imum)?(?: allowed)? ?(\d{2,9}) tokens per (?:request|batch)/i, /(?:max(?:imum)? allowed )?tokens per (?:submitted )?(?:batch|request) is (\d{2,9})/i]; // prettier-ignore
const countedTokens = [/(?:requested|has) (\d{1,9}) tokens/i];
const aboutInputs = /\b(inputs?|texts?|items?|documents?|batch|array)\b/i;
/** Of one text: a smaller request would hold it too. */
const aboutOneInput = /context length|input\[\d+\]|input\.\d+|each (input|text)|per (input|text)/i;

/** The limit that a 400, 413 or 422 names for a whole request; undefined where the error is another one. */
export function namedCapOf(error: unknown): NamedCap | undefined {
  const { status, itemIndex } = errorHints(error);
  if ((status !== 400 && status !== 413 && status !== 422) || itemIndex !== undefined) return undefined;
  const { message } = wordsOf(error);
  if (message.length > 2000 || aboutOneInput.test(message)) return undefined;
  const numberIn = (patterns: readonly RegExp[]): number | undefined => {
    const found = patterns.map((pattern) => pattern.exec(message)?.[1]).find((number) => number !== undefined);
    return found === undefined ? undefined : Number(found);
  };
  const tokens = numberIn(capOfTokens);
  const items = tokens === undefined && aboutInputs.test(message) ? numberIn(capOfItems) : undefined;
  const counted = tokens === undefined ? undefined : numberIn(countedTokens);
  return tokens === undefined && items === undefined ? undefined : { items, tokens, counted };
}

/** The words of an error, wherever its client puts them. */
function wordsOf(error: unknown): { readonly code: string; readonly type: string; readonly message: string } {
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
