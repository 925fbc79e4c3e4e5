import { checkClock } from "../core/contract/settings.ts";
import { systemClock, type Clock } from "../core/runtime/clock.ts";
import { check, checkCount, checkFunction, checkNotNegative, checkOptions, oneOf } from "../shared/checks.ts";
import { ProviderBucket, type ProviderShape } from "./provider-bucket.ts";
import { errorBody, limitHeaders, retryHeaders, type ProviderStyle } from "./provider-headers.ts";

/** Limits of the provider, which may change while it runs. */
export interface ProviderLimits {
  /**
   * Tokens a minute.
   * @default 300000
   */
  readonly tokensPerMinute?: number | undefined;
  /**
   * Requests a minute.
   * @default 3000
   */
  readonly requestsPerMinute?: number | undefined;
}

/** Options of `fakeEmbeddingsApi`. */
export interface FakeEmbeddingsApiOptions extends ProviderLimits {
  /**
   * How it counts: `"minute"` or `"10s"`, a bucket that holds as much and is refilled evenly, or `"fixed-minutes"`.
   * @default "minute"
   */
  readonly shape?: ProviderShape | undefined;
  /**
   * Whose headers and error bodies it sends.
   * @default "openai"
   */
  readonly style?: ProviderStyle | undefined;
  /**
   * False: no reply has headers about limits, and a 429 only says that it is one.
   * @default true
   */
  readonly headers?: boolean | undefined;
  /**
   * Most inputs in a request; more get a 400.
   * @default 2048
   */
  readonly maxInputs?: number | undefined;
  /**
   * Most tokens in a request; more get a 400.
   * @default 300000
   */
  readonly maxRequestTokens?: number | undefined;
  /**
   * Tokens of a text. Give a tokenizer's count for exact figures.
   * @default a token for each four characters
   */
  readonly countTokens?: ((text: string) => number) | undefined;
  /**
   * Time of a request that is accepted, in milliseconds; a refusal takes a fifth of it.
   * @default 100
   */
  readonly latencyMs?: number | undefined;
  /**
   * The source of time. With `virtualClock()` of `sheaf/tuning` an hour passes in seconds.
   * @default the system's clock
   */
  readonly clock?: Clock | undefined;
}

/** Counts of a fake API since it was made. */
export interface FakeEmbeddingsApiCounts {
  readonly requests: number;
  readonly accepted: number;
  /** 429. */
  readonly refused: number;
  /** 400. */
  readonly wrong: number;
  /** Of accepted requests. */
  readonly tokens: number;
  readonly inputs: number;
}

/** @see fakeEmbeddingsApi */
export interface FakeEmbeddingsApi {
  /** Answers `POST …/embeddings`; give it to a client as its `fetch`. */
  readonly fetch: typeof globalThis.fetch;
  /** Tightens or widens limits from now on. */
  setLimits(limits: ProviderLimits): void;
  /** From now on refuses everything as a used-up quota (`insufficient_quota`), or no longer. */
  setQuotaUsedUp(isUsedUp: boolean): void;
  counts(): FakeEmbeddingsApiCounts;
}

const numbersInVector = 8;

/**
 * An embeddings API in this process that enforces limits of tokens and requests as OpenAI's does, for tests: it answers with the
 * real headers, `usage`, 429 and 400. It listens on no port: give its `fetch` to a client.
 * @throws {TypeError | RangeError} for a wrong option.
 */
export function fakeEmbeddingsApi(options: FakeEmbeddingsApiOptions = {}): FakeEmbeddingsApi {
  checkOptions(options, checks);
  const { shape = "minute", style = "openai", headers: tells = true, maxInputs = 2048 } = options;
  const { maxRequestTokens = 300_000, latencyMs = 100, clock = systemClock } = options;
  const { countTokens = (text: string) => Math.ceil(text.length / 4) } = options;
  const buckets = {
    requests: new ProviderBucket(options.requestsPerMinute ?? 3000, shape, clock.now()),
    tokens: new ProviderBucket(options.tokensPerMinute ?? 300_000, shape, clock.now()),
  };
  const counts = { requests: 0, accepted: 0, refused: 0, wrong: 0, tokens: 0, inputs: 0 };
  let isQuotaUsedUp = false;

  const answer = (body: EmbeddingsBody): { response: Response; tookMs: number } => {
    const nowMs = clock.now();
    const reply = (status: number, json: object, more: Record<string, string> = {}): Response => {
      const known = tells ? { ...limitHeaders(style, buckets, nowMs), ...more } : {};
      return Response.json(json, { status, headers: known });
    };
    const wrong = (message: string, code: string): { response: Response; tookMs: number } => {
      counts.wrong++;
      return { response: reply(400, errorBody(style, message, "invalid_request_error", code)), tookMs: latencyMs / 5 };
    };
    const refused = (message: string, type: string, code: string, waitMs?: number) => {
      counts.refused++;
      const after = waitMs === undefined || waitMs === Infinity ? {} : retryHeaders(waitMs);
      return { response: reply(429, errorBody(style, message, type, code), after), tookMs: latencyMs / 5 };
    };

    counts.requests++;
    if (isQuotaUsedUp)
      return refused("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota"); // prettier-ignore
    const inputs = Array.isArray(body.input) && typeof body.input[0] !== "number" ? body.input : [body.input];
    if (inputs.length > maxInputs)
      return wrong(`'input' has ${inputs.length} items; it must have at most ${maxInputs}.`, "too_many_inputs");
    const tokens = inputs.reduce<number>((sum, input) => sum + tokensOf(input, countTokens), 0);
    if (tokens > maxRequestTokens)
      return wrong(`Requested ${tokens} tokens, max ${maxRequestTokens} tokens per request`, "max_tokens_per_request");
    for (const [kind, amount, abbreviation] of [
      ["requests", 1, "RPM"],
      ["tokens", tokens, "TPM"],
    ] as const) {
      const bucket = buckets[kind];
      const waitMs = bucket.waitMs(amount, nowMs);
      if (waitMs === 0) continue;
      const used = Math.round(bucket.limit - bucket.left(nowMs));
      const message =
        `Rate limit reached for ${String(body.model)} on ${kind} per min (${abbreviation}): Limit ${bucket.limit}, ` +
        `Used ${used}, Requested ${amount}.`;
      return refused(message, kind, "rate_limit_exceeded", waitMs);
    }
    buckets.requests.spend(1);
    buckets.tokens.spend(tokens);
    counts.accepted++;
    counts.tokens += tokens;
    counts.inputs += inputs.length;
    const isBase64 = body.encoding_format === "base64";
    const data = inputs.map((input, index) => ({ object: "embedding", index, embedding: vectorOf(input, isBase64) }));
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { response: reply(200, { object: "list", data, model: body.model, usage }), tookMs: latencyMs };
  };

  const fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = input instanceof Request ? input : undefined;
    const url = typeof input === "string" ? input : input instanceof Request ? input.url : input.href;
    if (!/\/embeddings(\?|$)/.test(url))
      return Response.json({ error: { message: `No route ${url}` } }, { status: 404 });
    const text = typeof init?.body === "string" ? init.body : await (request ?? new Request(url, init)).text();
    const { response, tookMs } = answer(JSON.parse(text) as EmbeddingsBody);
    await passing(clock, tookMs, init?.signal ?? request?.signal);
    return response;
  };

  return {
    fetch,
    setLimits: (limits) => {
      checkOptions(limits, limitChecks);
      const { tokensPerMinute, requestsPerMinute } = limits;
      if (tokensPerMinute !== undefined) buckets.tokens.setLimit(tokensPerMinute, clock.now());
      if (requestsPerMinute !== undefined) buckets.requests.setLimit(requestsPerMinute, clock.now());
    },
    setQuotaUsedUp: (isUsedUp) => void (isQuotaUsedUp = isUsedUp),
    counts: () => ({ ...counts }),
  };
}

interface EmbeddingsBody {
  readonly input: unknown;
  readonly model?: unknown;
  readonly encoding_format?: unknown;
}

const limitChecks = { tokensPerMinute: checkCount, requestsPerMinute: checkCount };
const checks = {
  ...limitChecks,
  shape: oneOf("minute", "10s", "fixed-minutes"),
  style: oneOf("openai", "azure", "cohere", "voyage"),
  headers: (name: string, value: unknown) => check(typeof value === "boolean", name, "true or false", value, TypeError),
  maxInputs: checkCount,
  maxRequestTokens: checkCount,
  countTokens: checkFunction,
  latencyMs: checkNotNegative,
  clock: checkClock,
} satisfies Record<keyof FakeEmbeddingsApiOptions, unknown>;

const tokensOf = (input: unknown, countTokens: (text: string) => number): number =>
  Array.isArray(input) ? input.length : countTokens(String(input));

/** The same vector for the same input, another one for another. */
function vectorOf(input: unknown, isBase64: boolean): number[] | string {
  let hash = 2166136261;
  const text = typeof input === "string" ? input : JSON.stringify(input);
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  const vector = Float32Array.from({ length: numbersInVector }, (_, i) => {
    hash = Math.imul(hash ^ (hash >>> 15), 2246822519 + i);
    return (hash >>> 8) / 2 ** 24 - 0.5;
  });
  return isBase64 ? btoa(String.fromCharCode(...new Uint8Array(vector.buffer))) : [...vector];
}

/** Resolves after that time; rejects with the signal's reason when it aborts. */
function passing(clock: Clock, tookMs: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error);
    const abort = (): void => {
      cancel();
      reject(signal!.reason as Error);
    };
    const cancel = clock.after(tookMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
