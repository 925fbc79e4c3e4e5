import type { Batcher } from "../core/contract/batcher.ts";
import type { BatcherOptions } from "../core/contract/options.ts";
import { checkFunction } from "../shared/checks.ts";
import { describe } from "../shared/describe.ts";
import { apiBatcher, type RequestLimits } from "./api-client/api-batcher.ts";
import { ClientsOfRuns } from "./api-client/clients-of-runs.ts";
import type { ApiRun, Reply } from "./api-client/rate-limited.ts";
import { estimateTokens, weighText } from "./api-client/tokens/tokens.ts";
import { vectorsOrErrors } from "./shared/vector.ts";

export type { RequestLimits } from "./api-client/api-batcher.ts";

/** LangChain's `EmbeddingsInterface`: `OpenAIEmbeddings`, `CohereEmbeddings`, or your own. */
export interface EmbeddingsLike {
  embedDocuments(texts: string[]): Promise<number[][]>;
  embedQuery(text: string): Promise<number[]>;
}

export interface CoalescedEmbeddingsOptions
  extends
    RequestLimits,
    Pick<
      BatcherOptions<string, number[]>,
      "maxQueueSize" | "timeoutMs" | "runTimeoutMs" | "rateLimit" | "maxPauseMs" | "clock"
    > {
  /**
   * Tokens of a text.
   * @default estimateTokens
   * @see maxBatchWeight
   * @see maxItemWeight
   */
  readonly weigh?: ((text: string) => number) | undefined;
  /**
   * Embeds several queries at once, for models that treat queries and documents differently (Cohere's and Voyage's
   * `inputType`, Google's `taskType`, E5's prefixes). The default suits models that treat both alike, as OpenAI's
   * do.
   * @default the instance's `embedDocuments`
   * @example
   * new CoalescedEmbeddings(forDocuments, { embedQueries: (texts) => forQueries.embedDocuments(texts) });
   */
  readonly embedQueries?: ((texts: string[]) => Promise<number[][]>) | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default "embeddings"
   */
  readonly name?: string | undefined;
}

interface Text {
  readonly text: string;
  readonly kind: "query" | "document";
}

/**
 * A LangChain Embeddings instance whose concurrent calls share requests; use it in place of the one it wraps. Queries go before
 * waiting documents. LangChain's own retries stay (`maxRetries` of the wrapped instance, 6 by default): they happen inside a run,
 * once for all of its callers. A call that then still gets a 429 is sent again after a pause that holds everything back.
 *
 * LangChain hides the headers and the `usage` of replies. Pass a function that creates the instance with a given `fetch`, and they
 * are read there; from an instance only 429s can be learned.
 * @example new CoalescedEmbeddings((fetch) => new OpenAIEmbeddings({ model, maxRetries: 0, configuration: { fetch } }));
 */
export class CoalescedEmbeddings implements EmbeddingsLike {
  /** For statistics, metrics and `close()`. */
  readonly batcher: Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe" | "drain" | "close">;
  readonly #batcher: Batcher<Text, number[]>;

  /** @throws {TypeError | RangeError} for wrong options. */
  constructor(
    embeddings: EmbeddingsLike | ((fetch: typeof globalThis.fetch) => EmbeddingsLike),
    options: CoalescedEmbeddingsOptions = {},
  ) {
    const clients =
      typeof embeddings === "function" ? new ClientsOfRuns((fetch) => checked(embeddings(fetch))) : undefined;
    const instance = typeof embeddings === "function" ? undefined : checked(embeddings);
    const { weigh = estimateTokens, embedQueries, ...rest } = options;
    if (embedQueries !== undefined) checkFunction("embedQueries", embedQueries);
    const embedAll = (values: string[], replied: (reply: Reply) => void): Promise<number[][]> =>
      clients === undefined
        ? instance!.embedDocuments(values)
        : clients.run((client) => client.embedDocuments(values), replied);
    const run: ApiRun<Text, number[]> = async (texts, _context, replied) => {
      const values = texts.map(({ text }) => text);
      const isQueries = embedQueries !== undefined && texts[0]!.kind === "query";
      const vectors = await (isQueries ? embedQueries(values) : embedAll(values, replied));
      // The batcher refuses a result that is not an array.
      return Array.isArray(vectors) ? vectorsOrErrors(vectors) : vectors;
    };
    const { name = "embeddings" } = rest;
    const own = {
      name,
      onQueueFull: "wait" as const,
      groupKey: embedQueries && (({ kind }: Text) => kind),
    };
    const use = { textOf: ({ text }: Text) => text, estimate: ({ text }: Text) => weighText(text, weigh, name) };
    this.#batcher = apiBatcher(run, { ...rest, ...own }, use);
    this.batcher = this.#batcher;
  }

  embedQuery(text: string): Promise<number[]> {
    return this.#batcher({ text, kind: "query" });
  }

  /** Embeds any number of texts; vectors come in their order. Rejects with the first error. */
  embedDocuments(texts: string[]): Promise<number[][]> {
    return this.#batcher.many(
      texts.map((text) => ({ text, kind: "document" })),
      { priority: "bulk" },
    );
  }
}

function checked(embeddings: EmbeddingsLike): EmbeddingsLike {
  const { embedDocuments } = (embeddings ?? {}) as Partial<EmbeddingsLike>;
  if (typeof embedDocuments === "function") return embeddings;
  throw new TypeError(
    `CoalescedEmbeddings wraps an Embeddings instance with embedDocuments, got ${describe(embeddings)}`,
  );
}
