import { isSocketError } from "../../core/dispatch/bisect.ts";
import { headerOf, type HeadersLike } from "../../limits/told-limits.ts";

/** The facts that a batcher learns from an error of an HTTP API. */
export interface ErrorHints {
  /** HTTP status; undefined where no reply came. */
  readonly status: number | undefined;
  /** How long to pause before the next request, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The input of the request that the API names as the wrong one. */
  readonly itemIndex: number | undefined;
}

/** Caps a server's pause at two minutes, so that a `Retry-After` of a day does not stop the program. */
export const longestPauseMs = 120_000;
/** The pause after a 429 without `Retry-After`. */
const pauseOf429Ms = 1000;

/**
 * Reads an error of openai's client (`status`, `headers`, `param`), the AI SDK (`statusCode`, `responseHeaders`, `data`),
 * axios (`response`), `HttpError`, or an error of the user's own fetch in one of these shapes.
 */
export function errorHints(error: unknown): ErrorHints {
  const { status, statusCode, response, param, error: inner, data } = fieldsOf(error);
  const { retryAfterMs: named } = fieldsOf(error);
  const { status: axiosStatus, data: axiosData } = fieldsOf(response);
  const httpStatus = [status, statusCode, axiosStatus].find((value) => typeof value === "number");
  const body = [inner, fieldsOf(data)["error"], fieldsOf(axiosData)["error"]].find(isObject);
  const isBusy = httpStatus === 429 || httpStatus === 503;
  const given =
    typeof named === "number" ? Math.min(longestPauseMs, named) : isBusy ? retryAfterMsOf(headersOf(error)) : undefined;
  return {
    status: httpStatus,
    retryAfterMs: given ?? (httpStatus === 429 ? pauseOf429Ms : undefined),
    itemIndex: inputIndexOf(param ?? fieldsOf(body)["param"]),
  };
}

/** The headers of the reply that an error stands for. */
export function headersOf(error: unknown): HeadersLike | undefined {
  const { headers, responseHeaders, response } = fieldsOf(error);
  return (headers ?? responseHeaders ?? fieldsOf(response)["headers"]) as HeadersLike | undefined;
}

/** The same error with the two fields that the batcher reads: `retryAfterMs` and `itemIndex`. */
export function withHints(error: unknown, { retryAfterMs, itemIndex }: ErrorHints = errorHints(error)): unknown {
  if (!isObject(error) || !Object.isExtensible(error)) return error;
  // Not enumerable: a log of the error shows only the client's own fields.
  if (retryAfterMs !== undefined && fieldsOf(error)["retryAfterMs"] === undefined)
    define(error, "retryAfterMs", retryAfterMs);
  if (itemIndex !== undefined && !("itemIndex" in error)) define(error, "itemIndex", itemIndex);
  return error;
}

const statusesOfTheRequest = new Set([400, 413, 422]);

/**
 * Whether a single input may be at fault, so that a bisection is worth its runs: the API says that the request is wrong. False for
 * errors about the key, the model or the API itself, and if no reply came.
 */
export const blamesInputs = (error: unknown): boolean => statusesOfTheRequest.has(errorHints(error).status ?? 0);

/** No reply came: fetch's TypeError, openai's APIConnectionError and timeout, or a socket's error behind either. */
export function isLostConnection(error: unknown): boolean {
  let depth = 0;
  for (let at: unknown = error; isObject(at) && depth < 4; at = fieldsOf(at)["cause"], depth++) {
    const { name, code, message } = fieldsOf(at);
    if (name === "AbortError") return false;
    if (typeof code === "string" && isSocketError(code)) return true;
    if (/^(connection error|request timed out|fetch failed|terminated)\.?/i.test(String(message))) return true;
  }
  return false;
}

/** `retry-after-ms`, else `retry-after` in seconds or as a date; 1 ms to two minutes, or `mostMs`; undefined without either. */
export function retryAfterMsOf(headers: HeadersLike | undefined, mostMs: number = longestPauseMs): number | undefined {
  if (headers === undefined || headers === null) return undefined;
  const ms = numberOf(headerOf(headers, "retry-after-ms"));
  const after = headerOf(headers, "retry-after");
  const seconds = numberOf(after);
  const dateAtMs = after === undefined || seconds !== undefined ? Number.NaN : Date.parse(after);
  const asked = ms ?? (seconds === undefined ? dateAtMs - Date.now() : seconds * 1000);
  return Number.isNaN(asked) ? undefined : Math.min(mostMs, Math.max(1, asked));
}

/** The index in `input[3]`, `input.3`, `$.input[3]` or `body.input.3.text`; undefined if there is none. */
export function inputIndexOf(param: unknown): number | undefined {
  if (typeof param !== "string" || param.length > 200) return undefined;
  const index = /(?:^|[.$])input(?:\[(\d{1,6})\]|\.(\d{1,6}))(?=$|[.[])/.exec(param);
  return index === null ? undefined : Number(index[1] ?? index[2]);
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  isObject(value) ? (value as Readonly<Record<string, unknown>>) : {};
const define = (target: object, name: string, value: number): unknown =>
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
