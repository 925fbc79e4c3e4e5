import { isLostConnection } from "../api-client/api-error.ts";

/**
 * An endpoint's error for one item, or for the whole request. `status` is the HTTP status of either;
 * `retryAfterMs`, where the endpoint named it, pauses the client that long.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  /** For programs: the code of the endpoint's `BatcherError`, or the endpoint's own. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The reply is not an endpoint's. */
export const badReply = (message: string): HttpError => new HttpError(502, "BAD_REPLY", message);

/**
 * No whole reply came from an endpoint. A request that was sent may have run. `cause` is the error of `fetch`, whose own message
 * ("fetch failed") names neither the reason nor the address.
 */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** The socket's code, such as `ECONNREFUSED`; `CONNECTION_LOST` where the runtime gives none. */
  readonly code: string;
  /** The endpoint's address, without a query, which may hold a key. */
  readonly url: string;

  constructor(target: string, cause: unknown) {
    const { code, reason } = rootOf(cause);
    const { origin, pathname } = new URL(target);
    const url = origin + pathname;
    super(`No reply from ${url}: ${reason.includes(code) ? reason : `${reason} (${code})`}`, { cause });
    this.code = code;
    this.url = url;
  }
}

/** The error for the callers of a request: a lost connection gets code and address; any other error stays as it is. */
export const connectionErrorOf = (target: string, error: unknown): unknown =>
  isLostConnection(error) ? new ConnectionError(target, error) : error;

/** The first code in the chain of causes, with its message. */
function rootOf(error: unknown): { readonly code: string; readonly reason: string } {
  let message = "the connection was lost";
  let depth = 0;
  for (let at = error; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code } = at as { readonly code?: unknown };
    if (typeof code === "string") return { code, reason: at.message || message };
    message = at.message || message;
  }
  return { code: "CONNECTION_LOST", reason: message };
}
