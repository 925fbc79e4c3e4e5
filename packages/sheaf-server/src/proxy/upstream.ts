import { Problem } from "../server/problem.ts";

/** Headers of a request to the upstream, names in small letters. Holds keys: never logged. */
export type UpstreamHeaders = Readonly<Record<string, string>>;

export interface UpstreamReply {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Headers;
  readonly text: string;
}

/** The upstream's refusal. It goes to the caller, never to a log: an API may repeat the key that it refuses. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly status: number;
  declare readonly reply: UpstreamReply;
  /** What the batcher reads: when to come back, and which input is wrong. */
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

/**
 * One POST of JSON. Redirects are not followed: they would carry the key elsewhere.
 * @throws {Problem} `UPSTREAM_UNREACHABLE` when no reply came; the signal's reason when it aborts.
 */
export async function post(
  url: string,
  headers: UpstreamHeaders,
  body: string,
  signal: AbortSignal,
): Promise<UpstreamReply> {
  try {
    const sent = { ...headers, "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers: sent, body, signal, redirect: "manual" });
    const contentType = response.headers.get("content-type") ?? "application/octet-stream";
    return { status: response.status, contentType, headers: response.headers, text: await response.text() };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw unreachable(error);
  }
}

/** The reply's JSON. @throws {UpstreamError} for a refusal; {Problem} `UPSTREAM_ERROR` for what is no answer. */
export function jsonOfReply(reply: UpstreamReply): unknown {
  if (reply.status >= 400) throw new UpstreamError(reply);
  if (reply.status >= 300 || reply.status < 200)
    throw new Problem("UPSTREAM_ERROR", `The upstream answered ${reply.status}, which is no answer.`);
  const json = jsonOrUndefined(reply.text);
  if (json === undefined) throw new Problem("UPSTREAM_ERROR", "The upstream's answer is not JSON.");
  return json;
}

/** Says the code of the socket and nothing of the request. */
export function unreachable(error: unknown): Problem {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const reason = [code, cause?.code].find((value) => typeof value === "string") ?? "no reply";
  return new Problem("UPSTREAM_UNREACHABLE", `The upstream can not be reached: ${reason}.`);
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
