import { checkFunction } from "../shared/checks.ts";
import { describe } from "../shared/describe.ts";
import type { Batcher } from "../core/contract/batcher.ts";
import type { BatcherOptions } from "../core/contract/options.ts";
import { settingsOf } from "../core/contract/settings.ts";
import type { HeadersLike } from "../limits/told-limits.ts";
import { greedy } from "../policies/greedy.ts";
import { apiBatcher, apiDefaults, type RequestLimits } from "./api-client/api-batcher.ts";
import { canonicalJson } from "../shared/canonical-json.ts";
import type { ApiRun } from "./api-client/rate-limited.ts";
import { estimateTokens, split, weighText } from "./api-client/tokens/tokens.ts";
import { vectorsOrErrors } from "./shared/vector.ts";

/** Parameters of one `doEmbed`, as `embed()` and `embedMany()` pass them; further ones (`dimensions`) separate groups. */
interface EmbedParams {
  readonly values: string[];
  readonly abortSignal?: AbortSignal | undefined;
}

interface EmbedResult {
  embeddings: number[][];
  usage?: { tokens: number };
  warnings: never[];
}

/** An embedding model of the AI SDK: specification v3 (AI SDK 6) or v4 (AI SDK 7). */
interface EmbeddingModelLike {
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: PromiseLike<number | undefined> | number | undefined;
  doEmbed(params: never): PromiseLike<unknown>;
}

/** Middleware for `wrapEmbeddingModel` of AI SDK 6 and 7. */
export interface CoalesceMiddleware {
  readonly specificationVersion: "v3";
  wrapEmbed(call: { readonly params: EmbedParams; readonly model: EmbeddingModelLike }): Promise<EmbedResult>;
}

export interface CoalesceOptions
  extends
    RequestLimits,
    Pick<
      BatcherOptions<string, number[]>,
      "maxQueueSize" | "onQueueFull" | "timeoutMs" | "runTimeoutMs" | "rateLimit" | "maxPauseMs" | "clock"
    > {
  /**
   * Most texts in a request; never more than the model's `maxEmbeddingsPerCall`.
   * @default 100
   * @see maxBatchWeight
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Tokens of a text.
   * @default estimateTokens
   * @see maxBatchWeight
   * @see maxItemWeight
   */
  readonly weigh?: ((text: string) => number) | undefined;
  /**
   * Called once for each model with its batcher, to subscribe to it or to export its metrics.
   * @default none
   * @example
   * coalesce({ onBatcher: (batcher) => batcher.subscribe((record) => log(record.size)) });
   */
  readonly onBatcher?: ((batcher: Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe">) => void) | undefined;
}

/**
 * `wrapEmbeddingModel({ model, middleware: coalesce() })`: concurrent `embed()` calls share requests, unless their headers, provider
 * options or dimensions differ. An abort signal cancels only its own call.
 *
 * A batch that the API refuses with 429 is sent again after the pause that it asks for, which holds everything back. After other
 * failures the AI SDK's own retries come back to the batcher and share requests again.
 */
export function coalesce(options: CoalesceOptions = {}): CoalesceMiddleware {
  const batchers = new WeakMap<EmbeddingModelLike, Promise<TextBatcher>>();
  const of = (model: EmbeddingModelLike): Promise<TextBatcher> => {
    let batcher = batchers.get(model);
    if (batcher === undefined) {
      batcher = batcherOf(model, options);
      batchers.set(model, batcher);
      batcher.catch(() => batchers.delete(model));
    }
    return batcher;
  };
  check(options);
  return {
    specificationVersion: "v3",
    wrapEmbed: async ({ params, model }) => {
      const { values, abortSignal, ...shared } = params;
      const batcher = await of(model);
      const group = canonicalJson(shared);
      const calls = values.map((text): Call => ({ text, shared, group }));
      return joined(await batcher.many(calls, { signal: abortSignal }));
    },
  };
}

/** A text and the parameters of its call. */
interface Call {
  readonly text: string;
  readonly shared: Readonly<Record<string, unknown>>;
  readonly group: string;
}

/** A text's part of the reply to its batch. */
interface Part {
  readonly embedding: number[];
  readonly tokens: number | undefined;
  /** Its estimated share of the request. */
  readonly share: number;
  /** Its index in the request, and the request's number of texts. */
  readonly index: number;
  readonly texts: number;
  /** The rest of the reply: warnings, provider metadata, headers. One object for each batch. */
  readonly rest: Readonly<Record<string, unknown>>;
}

interface ReplyEnvelope {
  readonly response?: { readonly headers?: HeadersLike } | undefined;
}

type TextBatcher = Batcher<Call, Part>;

async function batcherOf(model: EmbeddingModelLike, options: CoalesceOptions): Promise<TextBatcher> {
  const { weigh = estimateTokens, onBatcher, maxBatchSize = apiDefaults.maxBatchSize, ...rest } = options;
  const most = (await model.maxEmbeddingsPerCall) ?? Infinity;
  const run: ApiRun<Call, Part> = async (calls, { signal }, replied) => {
    const values = calls.map(({ text }) => text);
    const params = { ...calls[0]!.shared, values, abortSignal: signal };
    const result = (await model.doEmbed(params as never)) as EmbedResult & ReplyEnvelope;
    replied({ tokens: result?.usage?.tokens, headers: result?.response?.headers });
    return partsOf(result, values, weigh);
  };
  const own = {
    name: model.modelId,
    maxBatchSize: Math.max(1, Math.min(maxBatchSize, most)),
    groupKey: ({ group }: Call) => group,
  };
  const use = { textOf: ({ text }: Call) => text, estimate: ({ text }: Call) => weighText(text, weigh, model.modelId) };
  const batcher = apiBatcher(run, { ...rest, ...own }, use);
  onBatcher?.(batcher);
  return batcher;
}

function partsOf(result: EmbedResult, values: readonly string[], weigh: (text: string) => number): (Part | Error)[] {
  const { embeddings, usage, response, ...others } = (result ?? {}) as EmbedResult & { readonly response?: object };
  if (!Array.isArray(embeddings)) throw new TypeError(`doEmbed must give embeddings, got ${describe(embeddings)}`);
  const weights = values.map(weigh);
  const sum = weights.reduce((a, b) => a + b, 0);
  const tokens = usage === undefined ? undefined : split(usage.tokens, weights);
  // The body holds the vectors of all callers.
  const { body: _, ...reply } = (response ?? {}) as { readonly body?: unknown };
  const rest = { ...others, ...(response === undefined ? {} : { response: reply }) };
  // The batcher checks their number.
  return vectorsOrErrors(embeddings).map((embedding, index) =>
    embedding instanceof Error
      ? embedding
      : {
          embedding,
          tokens: tokens?.[index],
          index,
          texts: values.length,
          share: sum > 0 ? weights[index]! / sum : 1 / values.length,
          rest,
        },
  );
}

/**
 * Joins the parts of a call's texts into its result. Fields that are not per text are those of its first batch; costs, and lists with
 * an element per text, are divided.
 */
function joined(parts: readonly Part[]): EmbedResult {
  const tokens = parts.reduce<number | undefined>(
    (sum, part) => (sum === undefined || part.tokens === undefined ? undefined : sum + part.tokens),
    0,
  );
  const [first] = parts;
  const own = parts.filter(({ rest }) => rest === first?.rest);
  const share = own.reduce((sum, part) => sum + part.share, 0);
  const places = new Set(own.map(({ index }) => index));
  return {
    warnings: [],
    ...(shareOf(first?.rest, { share, places, texts: first?.texts }) as Record<string, unknown> | undefined),
    embeddings: parts.map(({ embedding }) => embedding),
    ...(tokens === undefined ? {} : { usage: { tokens } }),
  };
}

const deepestShared = 8;
/** Names of amounts that are divided among the callers of a request. */
const sharedName = /cost|price|tokens$|^tokens?(used|count)?$/i;

/** A caller's part of a request. */
interface Own {
  readonly share: number;
  readonly places: ReadonlySet<number>;
  readonly texts: number | undefined;
}

/** The caller's part of a value: of costs and token counts (numbers, or numbers as text) and of lists with an element per text. */
function shareOf(value: unknown, own: Own, name: string = "", depth: number = 0): unknown {
  const { share, places, texts } = own;
  if (share >= 1 || depth > deepestShared) return value;
  if (typeof value === "object" && value !== null) {
    // Only plain data is divided: headers and the like are passed on.
    if (Array.isArray(value)) {
      const isOfTexts = value.length === texts && name !== "warnings";
      return value.filter((_, index) => !isOfTexts || places.has(index)).map((each) => shareOf(each, own, name, depth + 1)); // prettier-ignore
    }
    if (Object.getPrototypeOf(value) !== Object.prototype) return value;
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([key, each]) => [key, key === "headers" ? each : shareOf(each, own, key, depth + 1)])); // prettier-ignore
  }
  if (!sharedName.test(name)) return value;
  if (typeof value === "number") return value * share;
  return typeof value === "string" && /^\d+(\.\d+)?(e-?\d+)?$/i.test(value) ? String(Number(value) * share) : value;
}

function check(options: CoalesceOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`coalesce takes an object of options, got ${describe(options)}`);
  }
  const { onBatcher, ...rest } = options;
  if (onBatcher !== undefined) checkFunction("onBatcher", onBatcher);
  settingsOf(() => [], { ...rest, weigh: rest.weigh ?? estimateTokens }, greedy);
}
