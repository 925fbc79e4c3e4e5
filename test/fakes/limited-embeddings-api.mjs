// An embeddings API in this process that keeps limits of tokens and requests as the real ones do; it listens on no port. The
// API on a port, with faults on request, is embedding-api.mjs.
import { systemClock } from "../../packages/sheaf/dist/core/runtime/runtime.js";
import { spanOf } from "../../packages/sheaf/dist/limits/told-limits.js";
import { base64Of, vectorOf } from "./embedding-api.mjs";

/**
 * Answers with the real headers, `usage`, 429 and 400; give its `fetch` to a client. Options: `tokensPerMinute` (300,000),
 * `requestsPerMinute` (3000), `shape` (`"minute"` or `"10s"`: a bucket that holds as much and is refilled evenly), `style` (whose headers and errors), `headers` (false: nothing but the status tells of a limit),
 * `maxInputs`, `maxRequestTokens`, `countTokens`, `latencyMs` (a refusal takes a fifth of it) and `clock`.
 */
export function fakeEmbeddingsApi(options = {}) {
  const { shape = "minute", style = "openai", headers: tells = true, maxInputs = 2048 } = options;
  const { maxRequestTokens = 300_000, latencyMs = 100, clock = systemClock } = options;
  const { countTokens = (text) => Math.ceil(text.length / 4) } = options;
  const buckets = {
    requests: new ProviderBucket(options.requestsPerMinute ?? 3000, shape, clock.now()),
    tokens: new ProviderBucket(options.tokensPerMinute ?? 300_000, shape, clock.now()),
  };
  const counts = { requests: 0, accepted: 0, refused: 0, wrong: 0, tokens: 0, inputs: 0 };
  let isQuotaUsedUp = false;
  const answer = (body) => {
    const nowMs = clock.now();
    const reply = (status, json, more = {}) => {
      const known = tells ? { ...limitHeaders(style, buckets, nowMs), ...more } : {};
      return Response.json(json, { status, headers: known });
    };
    const wrong = (message, code) => {
      counts.wrong++;
      return { response: reply(400, errorBody(style, message, "invalid_request_error", code)), tookMs: latencyMs / 5 };
    };
    const refused = (message, type, code, waitMs) => {
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
    const tokens = inputs.reduce((sum, input) => sum + tokensOf(input, countTokens), 0);
    if (tokens > maxRequestTokens)
      return wrong(`Requested ${tokens} tokens, max ${maxRequestTokens} tokens per request`, "max_tokens_per_request");
    for (const [kind, amount, abbreviation] of [
      ["requests", 1, "RPM"],
      ["tokens", tokens, "TPM"],
    ]) {
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
    const data = inputs.map((input, index) => ({
      object: "embedding",
      index,
      embedding: isBase64 ? base64Of(vectorOf(input)) : vectorOf(input),
    }));
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { response: reply(200, { object: "list", data, model: body.model, usage }), tookMs: latencyMs };
  };
  const fetch = async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = typeof input === "string" ? input : input instanceof Request ? input.url : input.href;
    if (!/\/embeddings(\?|$)/.test(url))
      return Response.json({ error: { message: `No route ${url}` } }, { status: 404 });
    const text = typeof init?.body === "string" ? init.body : await (request ?? new Request(url, init)).text();
    const { response, tookMs } = answer(JSON.parse(text));
    await passing(clock, tookMs, init?.signal ?? request?.signal);
    return response;
  };
  return {
    fetch,
    setLimits: (limits) => {
      const { tokensPerMinute, requestsPerMinute } = limits;
      if (tokensPerMinute !== undefined) buckets.tokens.setLimit(tokensPerMinute, clock.now());
      if (requestsPerMinute !== undefined) buckets.requests.setLimit(requestsPerMinute, clock.now());
    },
    setQuotaUsedUp: (isUsedUp) => void (isQuotaUsedUp = isUsedUp),
    counts: () => ({ ...counts }),
  };
}
const tokensOf = (input, countTokens) => (Array.isArray(input) ? input.length : countTokens(String(input)));
/** Resolves after that time; rejects with the signal's reason when it aborts. */
export function passing(clock, tookMs, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const abort = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(tookMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}

const minuteMs = 60_000;
const burstMsOf = { minute: minuteMs, "10s": 10_000 };
/** One limit of a provider, such as tokens a minute. It starts full. */
export class ProviderBucket {
  #limit;
  #shape;
  #level;
  #filledAtMs;
  constructor(limit, shape, nowMs) {
    this.#limit = limit;
    this.#shape = shape;
    this.#filledAtMs = nowMs;
    this.#level = this.#holds;
  }
  get limit() {
    return this.#limit;
  }
  /** A changed limit counts from now on; the rest of a larger one is lost. */
  setLimit(limit, nowMs) {
    this.#refill(nowMs);
    this.#limit = limit;
    this.#level = Math.min(this.#level, this.#holds);
  }
  left(nowMs) {
    this.#refill(nowMs);
    return this.#level;
  }
  spend(amount) {
    this.#level -= amount;
  }
  /** Milliseconds until `amount` fits; Infinity where the bucket never holds so much. */
  waitMs(amount, nowMs) {
    if (amount > this.#holds) return Infinity;
    const missing = amount - this.left(nowMs);
    return missing <= 0 ? 0 : (missing * minuteMs) / this.#limit;
  }
  /** Milliseconds until it is full again. */
  resetMs(nowMs) {
    return this.waitMs(this.#holds, nowMs);
  }
  get #holds() {
    return (this.#limit * burstMsOf[this.#shape]) / minuteMs;
  }
  #refill(nowMs) {
    const flowedIn = ((nowMs - this.#filledAtMs) * this.#limit) / minuteMs;
    this.#level = Math.min(this.#holds, this.#level + flowedIn);
    this.#filledAtMs = nowMs;
  }
}

/** The headers about limits of any reply. */
export function limitHeaders(style, buckets, nowMs) {
  if (style === "voyage") return {};
  const headers = {};
  for (const kind of ["requests", "tokens"]) {
    const bucket = buckets[kind];
    const resetMs = bucket.resetMs(nowMs);
    headers[`x-ratelimit-limit-${kind}`] = String(bucket.limit);
    headers[`x-ratelimit-remaining-${kind}`] = String(Math.max(0, Math.floor(bucket.left(nowMs))));
    headers[`x-ratelimit-reset-${kind}`] = style === "openai" ? spanOf(resetMs) : String(Math.ceil(resetMs / 1000));
  }
  return headers;
}
/** The headers of a 429 that say when to come back. */
export function retryHeaders(waitMs) {
  return { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))), "retry-after-ms": String(Math.ceil(waitMs)) };
}
/** An error's body. */
function errorBody(style, message, type, code) {
  if (style === "voyage") return { detail: message };
  return { error: { message, type, param: null, code } };
}
