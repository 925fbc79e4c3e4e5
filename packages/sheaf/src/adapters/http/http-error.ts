/**
 * An endpoint's error for one item, or for the whole request. `status` is the HTTP status of either;
 * `retryAfterMs`, where the endpoint named it, pauses the client that long.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  /** A word for programs: of a `BatcherError` of the endpoint its code, else the endpoint's own. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}
