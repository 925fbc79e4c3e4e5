import type { Batcher } from "../../core/contract/batcher.ts";
import type { BatcherOptions } from "../../core/contract/options.ts";
import { checkShare, integerFrom } from "../../shared/checks.ts";
import { errorHints } from "../shared/api-error.ts";
import { canonicalJson } from "../shared/canonical-json.ts";
import { apiBatcher, type RequestLimits } from "../shared/api-batcher.ts";
import { estimateTokens, split } from "../shared/tokens.ts";
import type { EmbeddingsReply } from "./client.ts";
import { embeddingsOf } from "./vectors.ts";

/** One input and the parameters it is to be embedded with. */
export interface EmbeddingCall {
  /** A text, token ids, or another value that the API embeds. */
  readonly input: unknown;
  /** The body beside `input`: `{ model, dimensions, … }`. Inputs share a request only if these are equal. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** One input's part of a reply. */
export interface EmbeddingPart {
  /** As it came: numbers, or base64. */
  readonly embedding: unknown;
  /** Its share of the tokens that the API counted for the request, by estimate; undefined where it counted none. */
  readonly tokens: number | undefined;
  /** The reply without `data`; one object for each request. */
  readonly reply: Readonly<Record<string, unknown>>;
}

/** Sends one request and gives the parsed reply. Throws errors with `status`, `headers` and `param` where it has them. */
export type SendEmbeddings = (
  body: Readonly<Record<string, unknown>> & { readonly input: readonly unknown[] },
  options: { readonly signal: AbortSignal },
) => PromiseLike<unknown>;

/** Options of `embeddingRequests`. */
export interface EmbeddingRequestsOptions
  extends
    RequestLimits,
    Omit<
      BatcherOptions<EmbeddingCall, EmbeddingPart>,
      | keyof RequestLimits
      | "weigh"
      | "batchWeight"
      | "groupKey"
      | "orderKey"
      | "onBatchError"
      | "shouldBisect"
      | "runOne"
      | "resultKey"
      | "onMissing"
    > {
  /**
   * More requests for a batch that 429 refused, each after the pause that the API asks for; integer >= 0.
   * @default 2
   * @see rateLimit
   */
  readonly maxRetries?: number | undefined;
  /**
   * Retries that each successful request pays for, beside the first 10; > 0 and <= 1.
   * @default 0.2
   * @see maxRetries
   */
  readonly retryBudget?: number | undefined;
}

/**
 * The batcher of a gateway: inputs with any parameters come in, requests of equal parameters go out by `send`, and
 * replies are passed on as they are. `openaiEmbeddings` is the one for your own code.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function embeddingRequests(
  send: SendEmbeddings,
  options: EmbeddingRequestsOptions = {},
): Batcher<EmbeddingCall, EmbeddingPart> {
  const { maxRetries = 2, retryBudget: budget, ...rest } = options;
  integerFrom(0)("maxRetries", maxRetries);
  if (budget !== undefined) checkShare("retryBudget", budget);
  const run = async (
    calls: EmbeddingCall[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<EmbeddingPart[]> => {
    const inputs = calls.map(({ input }) => input);
    const reply = (await send({ ...calls[0]!.parameters, input: inputs }, { signal })) as EmbeddingsReply;
    const embeddings = embeddingsOf(reply, inputs.length);
    const { data: _, ...envelope } = reply;
    const counted = reply.usage?.total_tokens ?? reply.usage?.prompt_tokens;
    const tokens = counted === undefined ? undefined : split(counted, inputs.map(tokensOf));
    return embeddings.map((embedding, i) => ({ embedding, tokens: tokens?.[i], reply: envelope }));
  };
  const own = {
    weigh: ({ input }: EmbeddingCall) => tokensOf(input),
    groupKey: ({ parameters }: EmbeddingCall) => canonicalJson(parameters),
  };
  return apiBatcher(run, { ...rest, ...own }, { maxRetries, after: "refused", budget });
}

/** The position of the input that an API's error names, in its request; undefined where it names none. */
export const namedInput = (error: unknown): number | undefined => errorHints(error).itemIndex;

const tokensOf = (input: unknown): number =>
  typeof input === "string" || Array.isArray(input)
    ? estimateTokens(input)
    : estimateTokens(JSON.stringify(input) ?? "");
