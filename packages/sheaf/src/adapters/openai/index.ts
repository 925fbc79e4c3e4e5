import type { Batcher } from "../../core/contract/batcher.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { BatcherOptions } from "../../core/contract/options.ts";
import { batcherChecks } from "../../core/contract/settings.ts";
import { check, checkCount, checkOptions, checkShare, integerFrom, oneOf, type Check } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import { apiBatcher, type RequestLimits } from "../api-client/api-batcher.ts";
import { defined } from "../../shared/defined.ts";
import type { ApiRun } from "../api-client/rate-limited.ts";
import { estimateTokens } from "../api-client/tokens/tokens.ts";
import { throwErrorIn, withHeaders, type EmbeddingInput, type OpenAILike } from "./client.ts";
import { EncodingFallback } from "./encoding.ts";
import { vectorsOf } from "./vectors.ts";

export { openaiFetch, OpenAIError } from "./client.ts";
export type { EmbeddingInput, OpenAILike } from "./client.ts";
export { rateLimitHeaders } from "../../limits/limit-headers.ts";
export { estimateTokens } from "../api-client/tokens/tokens.ts";

/** OpenAI's API takes no more inputs in one request. */
const maxInputs = 2048;

export interface OpenAIEmbeddingsOptions
  extends
    RequestLimits,
    Pick<
      BatcherOptions<EmbeddingInput, number[]>,
      | "maxQueueSize"
      | "onQueueFull"
      | "timeoutMs"
      | "runTimeoutMs"
      | "policy"
      | "rateLimit"
      | "maxPauseMs"
      | "price"
      | "clock"
    > {
  /**
   * Name of the model, sent with every request. Required.
   * @example
   * openaiEmbeddings(new OpenAI(), { model: "text-embedding-3-small" });
   */
  readonly model: string;
  /**
   * Length of the vectors, for models that can shorten theirs; integer >= 1.
   * @default the model's own
   */
  readonly dimensions?: number | undefined;
  /**
   * OpenAI's id of the end user, sent with every request.
   * @default none
   */
  readonly user?: string | undefined;
  /**
   * Further parameters of the request's body. For other parameters, make another batcher.
   * @default none
   * @example
   * openaiEmbeddings(client, { model: "voyage-3", parameters: { input_type: "query" } });
   */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Encoding of the vectors in the reply: `"base64"` is a third of the size of `"float"`; `"default"` does not send
   * `encoding_format` (openai's client then sends base64 by itself, `openaiFetch` nothing). An API that refuses the
   * parameter is asked again without it, and remembered.
   * @default "base64"
   */
  readonly encoding?: "base64" | "float" | "default" | undefined;
  /**
   * Retries of a batch after 408, 409, 5xx and lost connections; integer >= 0. A 429 counts as no retry.
   * @default 2
   * @see rateLimit
   */
  readonly maxRetries?: number | undefined;
  /**
   * Retries earned by each successful request, on top of 10 at the start; > 0 and <= 1.
   * @default 0.2
   * @see maxRetries
   */
  readonly retryBudget?: number | undefined;
  /**
   * Tokens of an input.
   * @default estimateTokens
   * @see maxBatchWeight
   * @see maxItemWeight
   */
  readonly weigh?: ((input: EmbeddingInput) => number) | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default "embeddings"
   */
  readonly name?: string | undefined;
}

export interface EmbeddingsUsage {
  readonly requests: number;
  readonly promptTokens: number;
  readonly totalTokens: number;
}

export interface OpenAIEmbeddings extends Batcher<EmbeddingInput, number[]> {
  usage(): EmbeddingsUsage;
}

/**
 * `embed(text)` of any OpenAI-compatible API: concurrent calls share requests of at most 100 inputs and 300,000 tokens.
 * Equal texts that wait share one input. A 400 that names an input fails its caller only; the others go again.
 * `rateLimit: { runs: 3000, weight: 1_000_000, perMs: 60_000 }` keeps to 3000 requests and a million tokens a minute.
 *
 * Retries are the batcher's and not the client's, so that an API that says 429 gets one pause from everybody.
 * @throws {TypeError | RangeError} for wrong options.
 */
export function openaiEmbeddings(client: OpenAILike, options: OpenAIEmbeddingsOptions): OpenAIEmbeddings {
  checkArguments(client, options);
  const { model, dimensions, user, parameters, encoding = "base64", ...rest } = options;
  const { maxRetries = 2, retryBudget: budget, ...batcherOptions } = rest;
  const { weigh = estimateTokens, name = "embeddings", ...limits } = batcherOptions;
  const encodingFormat = encoding === "default" ? undefined : encoding;
  const body = { ...parameters, model, ...defined({ dimensions, user, encoding_format: encodingFormat }) };
  const fallback = new EncodingFallback();
  const usage = { requests: 0, promptTokens: 0, totalTokens: 0 };

  const run: ApiRun<EmbeddingInput, number[]> = async (input, context, replied) => {
    const ask = async (request: object): ReturnType<typeof withHeaders> => {
      usage.requests++;
      const options = { signal: context.signal, maxRetries: 0 } as const;
      const answer = await withHeaders(client.embeddings.create(request as never, options));
      throwErrorIn(answer.reply, answer.headers);
      return answer;
    };
    const { answer } = await fallback.ask({ ...body, input }, ask, () => context.countRun());
    const { reply, headers } = answer;
    replied({ headers, tokens: reply?.usage?.total_tokens ?? reply?.usage?.prompt_tokens });
    usage.promptTokens += reply?.usage?.prompt_tokens ?? 0;
    usage.totalTokens += reply?.usage?.total_tokens ?? 0;
    return vectorsOf(reply, input.length, dimensions);
  };

  const own = {
    name,
    dedupeKey: (input: EmbeddingInput) => (typeof input === "string" ? input : undefined),
  };
  const use = {
    maxRetries,
    budget,
    textOf: (input: EmbeddingInput) => input,
    estimate: (input: EmbeddingInput) => weighed(input, weigh, name),
  };
  const batcher = apiBatcher(run, { ...limits, ...own }, use);
  return Object.assign(batcher, { usage: () => ({ ...usage }) });
}

function weighed(input: EmbeddingInput, weigh: (input: EmbeddingInput) => number, name: string): number {
  if ((typeof input !== "string" && !Array.isArray(input)) || input.length === 0) {
    throw new BatcherError(
      "INVALID_INPUT",
      `${name}: an input is a text or token ids, not empty; got ${describe(input)}.`,
    );
  }
  return weigh(input);
}

const openaiChecks: Record<string, Check> = {
  model: () => undefined,
  dimensions: checkCount,
  user: () => undefined,
  parameters: () => undefined,
  encoding: oneOf("base64", "float", "default"),
  maxRetries: integerFrom(0),
  retryBudget: checkShare,
  ...batcherChecks,
} satisfies Record<keyof OpenAIEmbeddingsOptions, Check>;

function checkArguments(client: OpenAILike, options: OpenAIEmbeddingsOptions): void {
  if (typeof (client as Partial<OpenAILike> | null)?.embeddings?.create !== "function") {
    throw new TypeError(
      `openaiEmbeddings needs a client with embeddings.create (new OpenAI(), or openaiFetch({ baseURL, apiKey })), got ${describe(client)}`,
    );
  }
  checkOptions(options, openaiChecks);
  const { model, maxBatchSize = 1 } = options;
  check(typeof model === "string" && model !== "", "model", "the name of a model", model, TypeError);
  check(maxBatchSize <= maxInputs, "maxBatchSize", `at most ${maxInputs}, the inputs of one request`, maxBatchSize);
}
