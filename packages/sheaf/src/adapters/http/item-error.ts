import { BatcherError, type ErrorCode } from "../../index.ts";
import { longestPauseMs } from "../api-client/api-error.ts";
import type { WireError } from "./wire.ts";

export interface ItemError extends WireError {
  /** HTTP status, 400 … 599. */
  readonly status: number;
}

/** Longest message of an item: a reply may hold a thousand. */
const longestMessage = 1000;

/** The HTTP status of every error of a batcher. A new code without a status does not compile. */
export const httpStatusOf: Readonly<Record<ErrorCode, number>> = {
  QUEUE_FULL: 429,
  CLOSED: 503,
  TIMEOUT: 504,
  RUN_TIMEOUT: 504,
  // The item is at fault, not the size of the body.
  ITEM_TOO_LARGE: 422,
  RESULT_COUNT: 500,
  // The batch ran, and found nothing for the item's key.
  MISSING_RESULT: 404,
  WORKER_CRASHED: 500,
  INVALID_INPUT: 422,
};

/** An estimate for clients: whole milliseconds, 10 ms to a minute. */
const boundedWaitMs = (ms: number): number => Math.min(60_000, Math.max(10, Math.ceil(ms)));

/**
 * The default of `errorOf`: a `BatcherError` by its code; any other error by its `status` or `statusCode`, with its own
 * `code` and message; else 500.
 */
export function itemErrorOf(error: unknown): ItemError {
  const { status, statusCode, code, message, retryAfterMs } = (error ?? {}) as Record<string, unknown>;
  const given = [status, statusCode].find(isErrorStatus);
  const isBatchers = error instanceof BatcherError;
  // A full queue already knows how long it takes to drain; `stats()` would cost more than the refusal.
  const drainMs = isBatchers ? error.details["drainMs"] : undefined;
  const askedMs = typeof retryAfterMs === "number" ? Math.min(longestPauseMs, retryAfterMs) : 0;
  const waitMs = typeof drainMs === "number" ? boundedWaitMs(drainMs) : askedMs;
  return {
    status: isBatchers ? httpStatusOf[error.code] : (given ?? 500),
    code: typeof code === "string" ? code.slice(0, 100) : "ITEM_FAILED",
    message: (typeof message === "string" ? message : `The item failed with ${String(error)}`).slice(0, longestMessage),
    retry_after_ms: waitMs > 0 ? Math.ceil(waitMs) : undefined,
  };
}

/** The result of the user's `errorOf`, or a plain 500 if it threw or gave no error status. Other items are not affected. */
export function safely(errorOf: (error: unknown) => ItemError): (error: unknown) => ItemError {
  return (error) => {
    try {
      const answer = errorOf(error);
      if (isErrorStatus(answer.status)) return answer;
    } catch {
      // A fault of `errorOf`, of which the client learns nothing.
    }
    return { status: 500, code: "ITEM_FAILED", message: "The item failed." };
  };
}

const isErrorStatus = (status: unknown): status is number =>
  Number.isInteger(status) && Number(status) >= 400 && Number(status) < 600;
