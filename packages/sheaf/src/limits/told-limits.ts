/** Headers in the shapes of fetch, openai's client, the AI SDK and axios. */
export type HeadersLike =
  { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/** What a service reports about one of its limits; undefined if it says nothing. */
export interface ToldLimit {
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** Milliseconds until it is full again. */
  readonly resetMs: number | undefined;
}

export interface ToldLimits {
  readonly runs: ToldLimit;
  readonly weight: ToldLimit;
  /** Of tokens in requests and in answers, where the service limits them apart. */
  readonly input?: ToldLimit | undefined;
  readonly output?: ToldLimit | undefined;
}

const prefixes = ["x-ratelimit-", "ratelimit-"];

/**
 * Reads `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, with or without `x-`. OpenAI writes resets as `6m0s`
 * (developers.openai.com/api/docs/guides/rate-limits), Azure as seconds, with -1 where it has no figure
 * (learn.microsoft.com/answers/questions/5625878). Some Azure deployments report the remaining amounts only, and that of
 * requests per ten seconds, not per minute: without a limit it is ignored. Cohere (docs.cohere.com/docs/rate-limits) and
 * Voyage (docs.voyageai.com/docs/rate-limits) document no such header; only a 429 shows their limits. Anthropic has
 * `anthropic-ratelimit-{requests,input-tokens,output-tokens}-{limit,remaining,reset}`, with resets in RFC 3339; its `tokens` repeat
 * the tightest of the others (platform.claude.com/docs/en/api/rate-limits).
 */
export function toldLimits(headers: HeadersLike | undefined): ToldLimits | undefined {
  if (headers === undefined || headers === null) return undefined;
  const read = (nameOf: (what: string) => string | undefined): ToldLimit => ({
    limit: countOf(nameOf("limit")),
    remaining: countOf(nameOf("remaining")),
    resetMs: spanMsOf(nameOf("reset")) ?? untilMs(nameOf("reset"), headerOf(headers, "date")),
  });
  const told = (kind: string): ToldLimit =>
    read((what) =>
      prefixes.map((prefix) => headerOf(headers, `${prefix}${what}-${kind}`)).find((text) => text !== undefined),
    );
  const toldApart = (kind: string): ToldLimit =>
    read((what) => headerOf(headers, `anthropic-ratelimit-${kind}-${what}`));
  const [input, output] = [toldApart("input-tokens"), toldApart("output-tokens")];
  const isApart = input.remaining !== undefined || output.remaining !== undefined;
  const [requests, weight] = isApart ? [toldApart("requests"), nothing] : [told("requests"), told("tokens")];
  const runs = requests.limit === undefined ? { ...requests, remaining: undefined } : requests;
  if (isApart) return { runs, weight, input, output };
  return runs.remaining === undefined && weight.remaining === undefined ? undefined : { runs, weight };
}

const nothing: ToldLimit = { limit: undefined, remaining: undefined, resetMs: undefined };

/** From the reply's `date` to a moment in RFC 3339. */
function untilMs(text: string | undefined, date: string | undefined): number | undefined {
  const ms = Date.parse(text ?? "") - (date === undefined ? Date.now() : Date.parse(date));
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
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
