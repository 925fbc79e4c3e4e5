// An API of language models in this process that keeps limits of requests and tokens as the real ones do: the request's tokens and its
// `max_tokens` count when it comes, and are settled when its answer ends. `style: "anthropic"` limits input and output apart, and counts
// the output as it comes.
import { systemClock } from "../../packages/sheaf/dist/core/runtime/runtime.js";
import { limitHeaders, passing, ProviderBucket, retryHeaders } from "./limited-embeddings-api.mjs";

/**
 * `call(body, signal)` resolves with `{ data, response }` as `withResponse()` of OpenAI's client, or rejects with an error of its
 * shape. `body.answer`: tokens of the answer; with `stream`, `data` gives `chunks` of it at that pace. Options: `requests`,
 * `tokens`, `input`, `output` (limits per minute), `style`, `shape`, `tells` (false: nothing but the status tells of a limit),
 * `firstMs` (to the first token), `msPerToken`, `chunks` and `clock`.
 */
export function limitedLlmApi(options = {}) {
  const { style = "openai", shape = "minute", tells = true, firstMs = 400, msPerToken = 10, chunks = 8 } = options;
  const { clock = systemClock } = options;
  const isApart = style === "anthropic";
  const bucketOf = (limit = 1e12) => new ProviderBucket(limit, shape, clock.now());
  const buckets = { requests: bucketOf(options.requests), tokens: bucketOf(options.tokens) };
  const apart = {
    requests: buckets.requests,
    "input-tokens": bucketOf(options.input),
    "output-tokens": bucketOf(options.output),
  };
  const counts = { requests: 0, refused: 0, input: 0, output: 0 };

  const headers = () => {
    const nowMs = clock.now();
    if (!tells) return {};
    if (!isApart) return limitHeaders("openai", buckets, nowMs);
    const told = { date: new Date(nowMs).toUTCString() };
    // The date has whole seconds, and so have the resets.
    const inSeconds = (ms) => new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace(".000", "");
    for (const [kind, bucket] of Object.entries(apart)) {
      told[`anthropic-ratelimit-${kind}-limit`] = String(bucket.limit);
      told[`anthropic-ratelimit-${kind}-remaining`] = String(Math.max(0, Math.floor(bucket.left(nowMs))));
      told[`anthropic-ratelimit-${kind}-reset`] = inSeconds(nowMs + bucket.resetMs(nowMs));
    }
    return told;
  };

  /** Counts a request, or throws its refusal. */
  const begin = (body) => {
    const nowMs = clock.now();
    const input = Math.ceil(JSON.stringify(body.messages).length / 4);
    const held = isApart ? 0 : (body.max_tokens ?? 0);
    const asked = isApart ? [["requests", 1], ["input-tokens", input], ["output-tokens", 1]] : [["requests", 1], ["tokens", input + held]]; // prettier-ignore
    const all = isApart ? apart : buckets;
    counts.requests++;
    const waitMs = Math.max(...asked.map(([kind, amount]) => all[kind].waitMs(amount, nowMs)));
    if (waitMs > 0) {
      counts.refused++;
      const error = new Error("429 Rate limit reached");
      throw Object.assign(error, { status: 429, headers: { ...headers(), ...(tells && retryHeaders(waitMs)) } });
    }
    const [, [kind, amount]] = asked;
    buckets.requests.spend(1);
    all[kind].spend(amount);
    counts.input += input;
    /** So much of its answer has come. */
    const settle = (output) => {
      counts.output += output;
      if (isApart) apart["output-tokens"].spend(output);
      else buckets.tokens.spend(output - held);
      return style === "anthropic" ? { input_tokens: input, output_tokens: output } : { prompt_tokens: input, completion_tokens: output }; // prettier-ignore
    };
    return settle;
  };

  async function* streamed(answer, settle, signal) {
    let sent = 0;
    try {
      for (let chunk = 1; chunk <= chunks; chunk++) {
        const upTo = Math.round((answer * chunk) / chunks);
        await passing(clock, (upTo - sent) * msPerToken, signal);
        const text = "abc".repeat(upTo - sent);
        sent = upTo;
        yield { choices: [{ delta: { content: text } }] };
      }
      const usage = settle(answer);
      sent = undefined;
      yield { choices: [], usage };
    } finally {
      if (sent !== undefined) settle(sent);
    }
  }

  return {
    counts: () => ({ ...counts }),
    async call(body, signal) {
      const settle = begin(body);
      if (body.stream === true) {
        await passing(clock, firstMs, signal);
        return { data: streamed(body.answer, settle, signal), response: { headers: headers() } };
      }
      await passing(clock, firstMs + body.answer * msPerToken, signal);
      return { data: { usage: settle(body.answer) }, response: { headers: headers() } };
    },
  };
}
