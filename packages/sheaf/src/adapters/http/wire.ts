import { priorities } from "../../core/contract/settings.ts";
import type { Priority } from "../../index.ts";

/**
 * The wire, one request a batch:
 *
 *     POST  {"items": [ … ], "timeouts_ms"?: [250, null, … ], "priorities"?: ["bulk", null, … ]}
 *     200   {"results": [{"status": 200, "value": …}, {"status": 422, "error": {"code", "message", "retry_after_ms"?}}, … ]}
 *
 * `results[i]` answers `items[i]`. The two other lists, where given, are as long as `items`. A request that is refused
 * whole has another status and a problem+json body `{title, status, detail, code}`.
 */
export interface WireError {
  readonly code: string;
  readonly message: string;
  /** How long the sender must pause. */
  readonly retry_after_ms?: number | undefined;
}

/** One item on its way to an endpoint. */
export interface WireItem {
  readonly json: string;
  /** The rest of its caller's timeout, in milliseconds; undefined without one. */
  readonly timeoutMs: number | undefined;
  /** undefined: interactive. */
  readonly priority: Priority | undefined;
}

export const isPriority = (value: unknown): value is Priority => priorities.includes(value as Priority);

/** The body of a request, without lists of nothing but null. */
export function requestBody(items: readonly WireItem[]): string {
  const lists = [`"items":[${items.map(({ json }) => json).join(",")}]`];
  if (items.some(({ timeoutMs }) => timeoutMs !== undefined)) {
    lists.push(`"timeouts_ms":${JSON.stringify(items.map(({ timeoutMs }) => timeoutMs ?? null))}`);
  }
  if (items.some(({ priority }) => priority !== undefined)) {
    lists.push(`"priorities":${JSON.stringify(items.map(({ priority }) => priority ?? null))}`);
  }
  return `{${lists.join(",")}}`;
}

/** The most bytes that a request adds to the JSON of its items: the three names, and each item's entries in them. */
export const bytesAroundItems = 64;
export const bytesAroundItem = 40;
