import { spanOf } from "../limits/told-limits.ts";
import type { ProviderBucket } from "./provider-bucket.ts";

/**
 * Whose headers and errors the double sends, as documented:
 * - `"openai"`: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, resets as `6m0s`, and on 429 `retry-after` and
 *   `retry-after-ms` (developers.openai.com/api/docs/guides/rate-limits).
 * - `"azure"`: the same names with resets in whole seconds (learn.microsoft.com/answers/questions/5625878), and
 *   `retry-after-ms` on 429.
 * - `"cohere"`, `"voyage"`: no header about limits; 429 with a message (docs.cohere.com/docs/rate-limits,
 *   docs.voyageai.com/docs/rate-limits).
 */
export type ProviderStyle = "openai" | "azure" | "cohere" | "voyage";

interface Buckets {
  readonly requests: ProviderBucket;
  readonly tokens: ProviderBucket;
}

/** The headers about limits of any reply. */
export function limitHeaders(style: ProviderStyle, buckets: Buckets, nowMs: number): Record<string, string> {
  if (style === "cohere" || style === "voyage") return {};
  const headers: Record<string, string> = {};
  for (const kind of ["requests", "tokens"] as const) {
    const bucket = buckets[kind];
    const resetMs = bucket.resetMs(nowMs);
    headers[`x-ratelimit-limit-${kind}`] = String(bucket.limit);
    headers[`x-ratelimit-remaining-${kind}`] = String(Math.max(0, Math.floor(bucket.left(nowMs))));
    headers[`x-ratelimit-reset-${kind}`] = style === "openai" ? spanOf(resetMs) : String(Math.ceil(resetMs / 1000));
  }
  return headers;
}

/** The headers of a 429 that say when to come back. */
export function retryHeaders(waitMs: number): Record<string, string> {
  return { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))), "retry-after-ms": String(Math.ceil(waitMs)) };
}

/** An error's body. */
export function errorBody(style: ProviderStyle, message: string, type: string, code: string): object {
  if (style === "cohere") return { id: "00000000-0000-0000-0000-000000000000", message };
  if (style === "voyage") return { detail: message };
  return { error: { message, type, param: null, code } };
}
