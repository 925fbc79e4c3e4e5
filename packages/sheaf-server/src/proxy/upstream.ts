import { isHang, replyText, retryAfterMsOf, statusIn, TooLarge } from "sheaf/internal/openai";
import { Problem } from "../problems/problem.ts";

/** Headers of a request to the upstream, with lower-case names. They hold keys: never log them. */
export type UpstreamHeaders = Readonly<Record<string, string>>;

export interface UpstreamReply {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Headers;
  readonly text: string;
}

/** The upstream's refusal. It goes to the caller but never to a log, since an API may repeat the key that it refuses. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly status: number;
  declare readonly reply: UpstreamReply;
  /** Hints for the batcher: when to come back, and which input is wrong. */
  declare readonly headers: Headers;
  declare readonly error: unknown;

  constructor(reply: UpstreamReply) {
    super(`The upstream answered ${reply.status}.`);
    this.status = reply.status;
    Object.defineProperties(this, {
      reply: { value: reply },
      headers: { value: reply.headers },
      error: { value: (jsonOrUndefined(reply.text) as { error?: unknown } | undefined)?.error },
    });
  }
}

/** Whether an error may be an input's fault: a refusal, a lost connection or no reply, but not an unusable reply. */
export function blamesInputs(error: unknown): boolean {
  if (error instanceof UpstreamError) return error.status >= 500 || [400, 403, 413, 422].includes(error.status);
  return isHang(error) || (error instanceof Problem && error.code === "UPSTREAM_UNREACHABLE");
}

/** The headers with which the upstream asks for a wait, capped at the longest wait of the proxy itself. */
export function waitHeaders(headerOf: (name: string) => unknown): Record<string, string> {
  const waits: Record<string, string> = {};
  for (const [name, unitMs] of [
    ["retry-after", 1000],
    ["retry-after-ms", 1],
  ] as const) {
    const waitMs = retryAfterMsOf({ [name]: headerOf(name) as string | undefined });
    if (waitMs !== undefined) waits[name] = String(Math.ceil(waitMs / unitMs));
  }
  return waits;
}

export interface PostOptions {
  readonly signal: AbortSignal;
  /** MAX_REPLY_BYTES, unpacked. */
  readonly maxReplyBytes: number;
}

/** Bounds a refusal, because every caller of the batch gets a copy. */
export const longestRefusalBytes = 65_536;

/**
 * One POST of JSON. Redirects are not followed: they would carry the key elsewhere.
 * @throws {Problem} `UPSTREAM_UNREACHABLE` when no reply came, `UPSTREAM_ERROR` for one that is a redirect or larger than
 * `maxReplyBytes`; the signal's reason when it aborts.
 */
export async function post(
  url: string,
  headers: UpstreamHeaders,
  body: string,
  { signal, maxReplyBytes }: PostOptions,
): Promise<UpstreamReply> {
  try {
    const sent = { ...headers, "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers: sent, body, signal, redirect: "manual" });
    const isRefusal = response.status >= 400;
    const most = isRefusal ? longestRefusalBytes : maxReplyBytes;
    const text = await replyText(response, most, false).catch((error: unknown) => {
      if (!(error instanceof TooLarge)) throw error;
      if (isRefusal) return undefined;
      const limit = `${maxReplyBytes} bytes (MAX_REPLY_BYTES)`;
      throw new Problem("UPSTREAM_ERROR", `The upstream's reply is larger than ${limit}; request less at a time.`);
    });
    return text === undefined ? longRefusal(response) : replyOf(response, text);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof Problem ? error : unreachable(error);
  }
}

function replyOf({ status, headers }: Response, text: string): UpstreamReply {
  if (status < 200 || (status >= 300 && status < 400))
    throw new Problem("UPSTREAM_ERROR", `The upstream answered ${status}, which is not a valid reply.`);
  return { status, contentType: headers.get("content-type") ?? "application/octet-stream", headers, text };
}

/** Replaces a long refusal; its status and headers still carry the hints for the batcher. */
export function longRefusal({ status, headers }: Pick<Response, "status" | "headers">): UpstreamReply {
  const message = `The upstream refused with ${status}, in more than ${longestRefusalBytes} bytes.`;
  const error = { message, type: "upstream_error", param: null, code: "UPSTREAM_ERROR" };
  return { status, contentType: "application/json", headers, text: JSON.stringify({ error }) };
}

/**
 * The reply's JSON. @throws {UpstreamError} for a refusal; {Problem} `UPSTREAM_ERROR` for anything that is not an
 * answer.
 */
export function jsonOfReply(reply: UpstreamReply): unknown {
  if (reply.status >= 400) throw new UpstreamError(reply);
  const json = jsonOrUndefined(reply.text);
  if (json === undefined) throw new Problem("UPSTREAM_ERROR", "The upstream's reply is not JSON.");
  const { data, error } = (json ?? {}) as { data?: unknown; error?: unknown };
  // Some gateways answer 200 with an error inside.
  if (data === undefined && error !== undefined && error !== null)
    throw new UpstreamError({ ...reply, status: statusIn(error) });
  return json;
}

/** Names the socket's error code and nothing of the request. */
export function unreachable(error: unknown): Problem {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const reason = [cause?.code, code].find((value) => typeof value === "string") ?? "no reply";
  return new Problem("UPSTREAM_UNREACHABLE", `The upstream cannot be reached: ${reason}.`);
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
