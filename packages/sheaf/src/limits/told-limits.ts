/** Headers as fetch, openai's client, the AI SDK and axios have them. */
export type HeadersLike =
  { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A service tells this of one of its limits; undefined where it says nothing. */
export interface ToldLimit {
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** Milliseconds until it is whole again. */
  readonly resetMs: number | undefined;
}

export interface ToldLimits {
  readonly runs: ToldLimit;
  readonly weight: ToldLimit;
}

const names = { runs: "requests", weight: "tokens" } as const;

/**
 * Reads `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, with or without `x-`. OpenAI writes resets as `6m0s`
 * (developers.openai.com/api/docs/guides/rate-limits), Azure as seconds, with -1 where it has no figure
 * (learn.microsoft.com/answers/questions/5625878). Some of Azure's deployments tell the remaining amounts alone, that of
 * requests for ten seconds and not for a minute: without a limit it is left out. Cohere (docs.cohere.com/docs/rate-limits) and
 * Voyage (docs.voyageai.com/docs/rate-limits) document no header: there 429 alone tells.
 */
export function toldLimits(headers: HeadersLike | undefined): ToldLimits | undefined {
  if (headers === undefined || headers === null) return undefined;
  const told = (kind: "runs" | "weight"): ToldLimit => {
    const of = (what: string): string | undefined =>
      headerOf(headers, `x-ratelimit-${what}-${names[kind]}`) ?? headerOf(headers, `ratelimit-${what}-${names[kind]}`);
    return { limit: countOf(of("limit")), remaining: countOf(of("remaining")), resetMs: spanMsOf(of("reset")) };
  };
  const [requests, weight] = [told("runs"), told("weight")];
  const runs = requests.limit === undefined ? { ...requests, remaining: undefined } : requests;
  return runs.remaining === undefined && weight.remaining === undefined ? undefined : { runs, weight };
}

export function headerOf(headers: HeadersLike, name: string): string | undefined {
  if (typeof headers.get === "function") return headers.get(name) ?? undefined;
  const value = (headers as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  return typeof value === "string" ? value : value?.[0];
}

const countOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `12ms`, `1.5s`, `6m0s`, or a number of seconds. */
export function spanMsOf(text: string | undefined): number | undefined {
  const seconds = countOf(text);
  if (seconds !== undefined) return seconds * 1000;
  if (text === undefined || !/^\s*(\d+(\.\d+)?(ms|[smhd]))+\s*$/.test(text)) return undefined;
  let sumMs = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
    sumMs += Number(number) * unitMs[unit as keyof typeof unitMs];
  return sumMs;
}

/** A span as OpenAI writes it: `12ms`, `1.5s`, `6m0s`. */
export function spanOf(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.round(ms) / 1000;
  const minutes = Math.floor(seconds / 60);
  const rest = Number((seconds - minutes * 60).toFixed(3));
  const hours = Math.floor(minutes / 60);
  return `${hours > 0 ? `${hours}h` : ""}${minutes > 0 ? `${minutes % 60}m` : ""}${rest}s`;
}
