import { BatcherError, type ErrorCode } from "../../index.ts";
import type { WireError } from "./wire.ts";

/** An item's error as an endpoint answers it. */
export interface ItemError extends WireError {
  /** HTTP status, 400 … 599. */
  readonly status: number;
}

/** Status of every error of a batcher. A new code without a status does not compile. */
const statusOfCode = {
  QUEUE_FULL: 429,
  CLOSED: 503,
  TIMEOUT: 504,
  RUN_TIMEOUT: 504,
  ITEM_TOO_LARGE: 413,
  RESULT_COUNT: 500,
  WORKER_CRASHED: 500,
  INVALID_INPUT: 422,
} satisfies Record<ErrorCode, number>;

/**
 * The default of `errorOf`: a `BatcherError` by its code; any other error by its `status` or `statusCode`, with its own
 * `code` and message; else 500.
 */
export function itemErrorOf(error: unknown): ItemError {
  const { status, statusCode, code, message, retryAfterMs } = (error ?? {}) as Record<string, unknown>;
  const given = [status, statusCode].find(
    (each) => Number.isInteger(each) && Number(each) >= 400 && Number(each) < 600,
  );
  const isBatchers = error instanceof BatcherError;
  return {
    status: isBatchers ? statusOfCode[error.code] : ((given as number | undefined) ?? 500),
    code: typeof code === "string" ? code : "ITEM_FAILED",
    message: typeof message === "string" ? message : `The item failed with ${String(error)}`,
    retry_after_ms: typeof retryAfterMs === "number" && retryAfterMs > 0 ? Math.ceil(retryAfterMs) : undefined,
  };
}
