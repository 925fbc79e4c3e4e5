import { describe } from "../../shared/describe.ts";
import type { Priority } from "../../index.ts";
import { boundedText, TooLarge, type ChunkSource } from "../shared/bounded-text.ts";
import { RequestError } from "./request-error.ts";
import { isPriority } from "./wire.ts";

export interface RawRequest {
  readonly method: string;
  readonly contentType: string | null;
  readonly contentLength: string | null;
  readonly body: ChunkSource;
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
}

/** A request after its checks. */
export interface BatchRequest {
  readonly items: readonly unknown[];
  /** As long as `items`, or absent. */
  readonly timeoutsMs: readonly (number | null)[] | undefined;
  readonly priorities: readonly (Priority | null)[] | undefined;
}

/**
 * Reads and checks a request; nothing of it has taken queue space by then.
 * @throws {RequestError} 405, 415, 413, 400 or 422, in this order, saying what was expected and what came.
 */
export async function readRequest(
  request: RawRequest,
  { maxBodyBytes, maxItems }: { readonly maxBodyBytes: number; readonly maxItems: number },
): Promise<BatchRequest> {
  const { method, contentType, contentLength, body } = request;
  if (method !== "POST")
    throw new RequestError(405, "METHOD_NOT_ALLOWED", `Use POST, not ${method}.`, { allow: "POST" });
  const mediaType = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  if (mediaType !== "application/json") {
    const got = contentType === null ? "none" : describe(contentType);
    throw new RequestError(
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      `Send the header content-type: application/json, got ${got}.`,
    );
  }
  const tooLarge = `The body may have at most ${maxBodyBytes} bytes (maxBodyBytes); send smaller batches.`;
  if (Number(contentLength) > maxBodyBytes) throw new RequestError(413, "BODY_TOO_LARGE", tooLarge);
  let value: unknown;
  try {
    value = JSON.parse(await unlessAborted(boundedText(body, maxBodyBytes), request.signal)) as unknown;
  } catch (error) {
    if (error instanceof TooLarge) throw new RequestError(413, "BODY_TOO_LARGE", tooLarge);
    if (request.signal.aborted) throw error;
    throw new RequestError(400, "NOT_JSON", `The body is not JSON in UTF-8: ${(error as Error).message.slice(0, 200)}`);
  }
  return checked(value, maxItems);
}

/** A body may never end, and its stream may miss that the client has left. */
function unlessAborted<T>(reading: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    reading.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function checked(value: unknown, maxItems: number): BatchRequest {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(`The body must be {"items": [ … ]}, got ${describe(value)}.`);
  }
  const { items, timeouts_ms: timeoutsMs, priorities, ...rest } = value as Record<string, unknown>;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    throw wrong(`The body has an unknown field ${describe(unknown)}; it takes items, timeouts_ms and priorities.`);
  }
  if (!Array.isArray(items)) throw wrong(`items must be an array, got ${describe(items)}.`);
  if (items.length > maxItems) throw wrong(`items may hold at most ${maxItems} (maxItems), got ${items.length}.`);
  return {
    items: items as unknown[],
    timeoutsMs: listOf(timeoutsMs, "timeouts_ms", items.length, "a number > 0", isTimeout),
    priorities: listOf(priorities, "priorities", items.length, `"immediate", "interactive" or "bulk"`, isPriority),
  };
}

const isTimeout = (value: unknown): value is number => typeof value === "number" && value > 0 && Number.isFinite(value);

function listOf<T>(
  list: unknown,
  name: string,
  length: number,
  expected: string,
  isOne: (value: unknown) => value is T,
): readonly (T | null)[] | undefined {
  if (list === undefined || list === null) return undefined;
  if (!Array.isArray(list) || list.length !== length) {
    const got = Array.isArray(list) ? String(list.length) : describe(list);
    throw wrong(`${name} must be an array as long as items (${length}), got ${got}.`);
  }
  const index = list.findIndex((each) => each !== null && !isOne(each));
  if (index >= 0) throw wrong(`${name}[${index}] must be ${expected} or null, got ${describe(list[index])}.`);
  return list as (T | null)[];
}

const wrong = (detail: string): RequestError => new RequestError(422, "INVALID_INPUT", detail);
