/** A failure of a call that is not the caller's mistake; that is a TypeError or RangeError. */
export type ErrorCode =
  | "QUEUE_FULL"
  | "CLOSED"
  | "TIMEOUT"
  | "RUN_TIMEOUT"
  | "ITEM_TOO_LARGE"
  | "RESULT_COUNT"
  | "MISSING_RESULT"
  | "WORKER_CRASHED"
  | "INVALID_INPUT";

/** The one error class of Sheaf. `code` is stable; `details` carries the numbers the message names. */
export class BatcherError extends Error {
  override readonly name = "BatcherError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }
}
