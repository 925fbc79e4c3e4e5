import type { Batcher } from "../../core/contract/batcher.ts";
import type { BatcherOptions } from "../../core/contract/options.ts";
import { errorHints } from "../api-client/api-error.ts";
import { canonicalJson } from "../../shared/canonical-json.ts";
import { apiBatcher, type RequestLimits } from "../api-client/api-batcher.ts";
import type { ApiRun } from "../api-client/rate-limited.ts";
import type { HeadersLike } from "../../limits/told-limits.ts";
import { estimateTokens, split } from "../api-client/tokens/tokens.ts";
import { throwErrorIn, type EmbeddingsReply } from "./client.ts";
import { base64Of, EncodingFallback } from "./encoding.ts";
import { embeddingsOf } from "./vectors.ts";

/** One input and the parameters it is to be embedded with. */
export interface EmbeddingCall {
  /** A text, token ids, or another value that the API embeds. */
  readonly input: unknown;
  /** The body beside `input`: `{ model, dimensions, … }`. Inputs share a request only if these are equal. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /**
   * Inputs share a request only if this is equal, such as a digest of the parameters and of the headers to send.
   * @default the parameters, as JSON
   */
  readonly group?: string | undefined;
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
  options: {
    readonly signal: AbortSignal;
    /** The calls that share the request, in the order of their inputs. */
    readonly calls: readonly EmbeddingCall[];
    /** Call it with the reply's headers, from which the limit is learned. */
    readonly onHeaders: (headers: HeadersLike) => void;
  },
) => PromiseLike<unknown>;

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
      | "runOne"
      | "resultKey"
      | "onMissing"
    > {}

/**
 * The batcher of a gateway: inputs with any parameters come in, requests of equal parameters go out by `send`, and
 * replies are passed on as they are. `openaiEmbeddings` is the one for your own code.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function embeddingRequests(
  send: SendEmbeddings,
  options: EmbeddingRequestsOptions = {},
): Batcher<EmbeddingCall, EmbeddingPart> {
  const fallback = new EncodingFallback();
  const run: ApiRun<EmbeddingCall, EmbeddingPart> = async (calls, context, replied) => {
    const { parameters } = calls[0]!;
    const inputs = calls.map(({ input }) => input);
    let headers: HeadersLike | undefined;
    const onHeaders = (sent: HeadersLike): void => void (headers = sent);
    const ask = async (body: Readonly<Record<string, unknown>>): Promise<{ readonly reply: EmbeddingsReply }> => {
      const options = { signal: context.signal, calls, onHeaders };
      const reply = (await send({ ...body, input: inputs }, options)) as EmbeddingsReply;
      throwErrorIn(reply, headers);
      return { reply };
    };
    const { answer, isOther } = await fallback.ask(parameters, ask, () => context.countRun());
    const { reply } = answer;
    const counted = reply?.usage?.total_tokens ?? reply?.usage?.prompt_tokens;
    replied({ headers, tokens: counted });
    const found = embeddingsOf(reply, inputs.length);
    const embeddings = isOther && parameters["encoding_format"] === "base64" ? found.map(base64Of) : found;
    const { data: _, ...envelope } = reply;
    const tokens = counted === undefined ? undefined : split(counted, inputs.map(tokensOf));
    return embeddings.map((embedding, i) => ({ embedding, tokens: tokens?.[i], reply: envelope }));
  };
  const own = { groupKey: ({ parameters, group }: EmbeddingCall) => group ?? canonicalJson(parameters) };
  const textOf = ({ input }: EmbeddingCall): unknown => input;
  return apiBatcher(run, { ...options, ...own }, { textOf, estimate: ({ input }) => tokensOf(input) });
}

/** The position of the input that an API's error names, in its request; undefined where it names none. */
export const namedInput = (error: unknown): number | undefined => errorHints(error).itemIndex;

const tokensOf = (input: unknown): number =>
  typeof input === "string" || Array.isArray(input)
    ? estimateTokens(input)
    : estimateTokens(JSON.stringify(input) ?? "");
