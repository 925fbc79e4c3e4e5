import { describe } from "../../shared/describe.ts";
import { retryAfterMsOf } from "../api-client/api-error.ts";
import { badReply, HttpError } from "./http-error.ts";

/** Longest message that is shown. */
const longestMessage = 1000;

/**
 * Reads the reply of a batch: one value or `Error` a result. That there is one for each item the batcher checks.
 * @throws {HttpError} 502 `BAD_REPLY`: the reply is not an endpoint's.
 */
export function resultsOf<Out>(text: string, parse: ((value: unknown) => Out) | undefined): (Out | Error)[] {
  const results = fieldOf(jsonOf(text), "results");
  if (!Array.isArray(results)) {
    throw badReply(`The endpoint's reply must be {"results": [ … ]}, got ${describe(text)}`);
  }
  return results.map((result: unknown) => {
    const status = fieldOf(result, "status");
    if (!isStatus(status))
      return badReply(`A result must have an integer status from 200 to 599, got ${describe(result)}`);
    if (status > 299) return errorOf(status, fieldOf(result, "error"));
    if (fieldOf(result, "error") !== undefined)
      return badReply(`A result of status ${status} must have no error, got ${describe(result)}`);
    const value = fieldOf(result, "value");
    try {
      return parse === undefined ? (value as Out) : parse(value);
    } catch (error) {
      return error instanceof Error ? error : new TypeError(`parse threw ${describe(error)}`);
    }
  });
}

/** The error of a request that was refused whole. */
export function errorOfReply(response: Response, text: string): HttpError {
  const problem = jsonOf(text);
  const { detail, code } = wordsOf(problem, ["detail", "code"]);
  const message = detail ?? (isRedirect(response) ? redirected(response) : `The endpoint answered ${response.status} ${response.statusText}`.trimEnd()); // prettier-ignore
  const retryAfterMs = retryAfterMsOf(response.headers);
  return new HttpError(response.status, code ?? `HTTP_${response.status}`, message, retryAfterMs);
}

/** A browser hides a redirect that is not followed: status 0. */
const isRedirect = ({ status, type }: Response): boolean =>
  type === "opaqueredirect" || (status >= 300 && status <= 399);

function redirected({ headers }: Response): string {
  const location = headers.get("location")?.slice(0, longestMessage);
  return `The endpoint redirects${location === undefined ? "" : ` to ${location}`}; give the client the address itself.`;
}

const isStatus = (status: unknown): status is number =>
  Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;

function errorOf(status: number, error: unknown): HttpError {
  const { code, message } = wordsOf(error, ["code", "message"]);
  // Within the same bounds as a header's.
  const retryAfterMs = retryAfterMsOf({ "retry-after-ms": String(fieldOf(error, "retry_after_ms")) });
  return new HttpError(status, code ?? `HTTP_${status}`, message ?? `The item failed with ${status}.`, retryAfterMs);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The text fields, cut to a length fit for a log. */
function wordsOf<Name extends string>(value: unknown, names: readonly Name[]): Partial<Record<Name, string>> {
  const words: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const word = fieldOf(value, name);
    if (typeof word === "string" && word !== "") words[name] = word.slice(0, longestMessage);
  }
  return words;
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
