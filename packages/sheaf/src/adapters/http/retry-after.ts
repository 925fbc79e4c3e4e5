/** A pause of a day would be the end of the program; one that ends every two minutes is not. */
const longestPauseMs = 120_000;

/** `retry-after-ms`, else `retry-after` in seconds or as a date: 1 ms to two minutes; undefined without either. */
export function retryAfterMsOf(headers: { get(name: string): string | null }): number | undefined {
  const ms = numberOf(headers.get("retry-after-ms"));
  if (ms !== undefined) return bounded(ms);
  const after = headers.get("retry-after");
  const seconds = numberOf(after);
  if (seconds !== undefined) return bounded(seconds * 1000);
  const dateMs = Date.parse(after ?? "");
  return Number.isNaN(dateMs) ? undefined : bounded(dateMs - Date.now());
}

/** A pause within bounds. */
export const bounded = (ms: number): number => Math.min(longestPauseMs, Math.max(1, ms));

const numberOf = (text: string | null): number | undefined =>
  text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
