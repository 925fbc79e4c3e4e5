import type { RateLimitFigures, RateLimitStats } from "../core/contract/rate-limit.ts";
import { spanOf } from "./told-limits.ts";

/**
 * The remaining limit in OpenAI's headers, `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`
 * (developers.openai.com/api/docs/guides/rate-limits), for a gateway's replies. Unknown limits are left out.
 */
export function rateLimitHeaders({ runs, weight }: Pick<RateLimitStats, "runs" | "weight">): Record<string, string> {
  return { ...headersOf("requests", runs), ...headersOf("tokens", weight) };
}

function headersOf(name: string, { perMinute, left, holds }: RateLimitFigures): Record<string, string> {
  if (perMinute === null || left === null || holds === null) return {};
  const resetMs = (60_000 * Math.max(0, holds - left)) / perMinute;
  return {
    [`x-ratelimit-limit-${name}`]: String(Math.round(perMinute)),
    [`x-ratelimit-remaining-${name}`]: String(Math.max(0, Math.floor(left))),
    [`x-ratelimit-reset-${name}`]: spanOf(resetMs),
  };
}
