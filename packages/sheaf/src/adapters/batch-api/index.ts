import type { Batcher } from "../../core/contract/batcher.ts";
import { assembleBatcher } from "../../core/assemble-batcher.ts";
import type { BatcherOptions, CallOptions } from "../../core/contract/options.ts";
import type { BatcherStats } from "../../core/contract/stats.ts";
import { batcherChecks } from "../../core/contract/settings.ts";
import { iteratorOf } from "../../core/calls/map.ts";
import { systemClock } from "../../core/runtime/runtime.ts";
import { wrapBatcher } from "../../core/wrap-batcher.ts";
import { fixedWindow } from "../../policies/fixed-window.ts";
import {
  check,
  checkCount,
  checkFunction,
  checkOptions,
  checkPositive,
  checkSpan,
  checkText,
  type Check,
} from "../../shared/checks.ts";
import { estimateTokens } from "../api-client/tokens/tokens.ts";
import { defined } from "../../shared/defined.ts";
import { utf8Bytes } from "../shared/utf8-bytes.ts";
import { BatchRuns, hashOf, type Line, type LineCounts } from "./batch-runs.ts";
import { providerOf, type MistralBatchesLike, type OpenAIBatchesLike } from "./provider.ts";

export { BatchLineError } from "./results.ts";
export type { LineCounts } from "./batch-runs.ts";
export type { MistralBatchesLike, OpenAIBatchesLike } from "./provider.ts";

/** Options of `batchApi`. */
export interface BatchApiOptions<In, Reply, Out> extends Pick<
  BatcherOptions<In, Out>,
  "maxBatchSize" | "maxWaitMs" | "concurrency" | "maxQueueSize" | "onQueueFull" | "name" | "clock"
> {
  /**
   * Path of the API that runs the lines. Required.
   * @example
   * batchApi(new OpenAI(), { endpoint: "/v1/embeddings", body, result });
   */
  readonly endpoint: string;
  /** Body of an item's request. Required. */
  readonly body: (item: In) => object;
  /**
   * Makes an item's result from the reply to its request.
   * @default the reply itself
   */
  readonly result?: ((reply: Reply) => Out) | undefined;
  /**
   * A folder for hashes and ids: a process that asks for the same inputs after a crash goes on with its predecessor's batches.
   * @default none: batches end with the process
   */
  readonly folder?: string | undefined;
  /**
   * Largest file, in bytes.
   * @default 200_000_000
   */
  readonly maxFileBytes?: number | undefined;
  /**
   * Most tokens in open batches.
   * @default none
   * @see weigh
   */
  readonly maxTokensWaiting?: number | undefined;
  /**
   * Tokens of an item.
   * @default an estimate from its request
   */
  readonly weigh?: ((item: In) => number) | undefined;
  /**
   * First wait between two looks at a batch, in milliseconds; it grows to twelve times as much.
   * @default 5000
   */
  readonly pollMs?: number | undefined;
}

export interface BatchApi<In, Out> extends Batcher<In, Out> {
  /** Also the lines of all batches so far. */
  stats(): BatcherStats & { readonly lines: LineCounts };
}

const apiDefaults = { maxBatchSize: 50_000, maxWaitMs: 60_000, maxQueueSize: 200_000, name: "batch-api" };
/** Of a line, beside its body and its endpoint. */
const lineBytes = 110;

/**
 * A provider's batch API as a batcher: calls become lines of files, which the provider runs within a day for about half the price.
 * A file goes out when it is full, when a list has ended, on `flush()`, or `maxWaitMs` after its first line.
 * @throws {TypeError | RangeError} for wrong options.
 */
export function batchApi<In, Reply = unknown, Out = Reply>(
  client: OpenAIBatchesLike | MistralBatchesLike,
  options: BatchApiOptions<In, Reply, Out>,
): BatchApi<In, Out> {
  const provider = providerOf(client);
  checkOptions(options, batchApiChecks);
  const { endpoint, body, result = (reply: Reply) => reply, folder, weigh, ...rest } = options;
  const { maxFileBytes = 200_000_000, maxTokensWaiting = Infinity, pollMs = 5000, ...limits } = defined(rest);
  const { concurrency = 10, clock = systemClock } = limits;
  const isPath = typeof endpoint === "string" && endpoint.startsWith("/");
  check(isPath, "endpoint", "a path such as /v1/embeddings", endpoint, TypeError);
  checkFunction("body", body);
  const runs = new BatchRuns(provider, { endpoint, resultOf: result, concurrency, maxTokensWaiting, pollMs, folder, clock }); // prettier-ignore
  const perLine = lineBytes + utf8Bytes(endpoint);
  const inner = assembleBatcher<Line, Out>(
    runs,
    {
      ...apiDefaults,
      ...limits,
      concurrency,
      // In bytes, of which each token has its part: a file keeps to both bounds.
      weigh: ({ body, tokens }) => Math.max(perLine + utf8Bytes(body), (tokens / maxTokensWaiting) * maxFileBytes),
      maxBatchWeight: maxFileBytes,
      maxItemWeight: maxFileBytes,
      groupKey: ({ model }) => model,
      dedupeKey: ({ hash }) => hash,
      dedupe: "running",
      overloadOrder: "arrival",
    },
    fixedWindow,
  );
  const lineOf = (item: In): Line => {
    const request = body(item);
    const text = JSON.stringify(request) as string | undefined;
    check(text !== undefined && text.startsWith("{"), "the request that body makes", "an object", request, TypeError);
    const { model } = request as { readonly model?: unknown };
    const tokens = weigh === undefined ? estimateTokens(text) : weigh(item);
    return { hash: hashOf(`${endpoint}\n${text}`), body: text, model: typeof model === "string" ? model : undefined, tokens }; // prettier-ignore
  };
  const batcher = wrapBatcher(inner, { item: lineOf, options: callOptions });
  const { many, settle, settleDetailed, map, stats, close } = batcher;
  const flush = (): void => void inner.flush();
  /** A list's last line is in: its file goes. */
  const flushing =
    <T>(list: (items: Iterable<In> & object, options?: CallOptions) => Promise<T>): typeof list =>
    (items, given) => {
      const results = list(items, given);
      flush();
      return results;
    };
  const closing: typeof close = (given) => {
    runs.isClosing = true;
    return close(given);
  };
  return Object.assign(batcher, {
    many: flushing(many),
    settle: flushing(settle),
    settleDetailed: flushing(settleDetailed),
    map: ((items, given) => map(flushedAtEnd(items, flush), given)) as typeof map,
    stats: () => ({ ...stats(), lines: runs.counts() }),
    close: closing,
    [Symbol.asyncDispose]: () => closing(),
  });
}

async function* flushedAtEnd<In>(items: Iterable<In> | AsyncIterable<In>, flush: () => void): AsyncGenerator<In> {
  yield* { [Symbol.asyncIterator]: () => iteratorOf(items) as AsyncIterator<In> };
  flush();
}

const ownOrder = "left out: the provider runs the lines of a file in its own order";

/** @throws {TypeError} for an option that a provider's batch cannot keep. */
function callOptions(options: CallOptions | undefined): CallOptions | undefined {
  for (const name of ["priority", "alone"] as const)
    check(options?.[name] === undefined, name, ownOrder, options?.[name], TypeError);
  return options;
}

const { maxWaitMs, maxQueueSize, onQueueFull, name, clock } = batcherChecks;

const batchApiChecks = {
  maxBatchSize: checkCount,
  maxWaitMs,
  concurrency: checkCount,
  maxQueueSize,
  onQueueFull,
  name,
  clock,
  endpoint: () => undefined,
  body: () => undefined,
  result: checkFunction,
  folder: checkText,
  maxFileBytes: checkCount,
  maxTokensWaiting: checkPositive,
  weigh: checkFunction,
  pollMs: checkSpan,
} satisfies Record<keyof BatchApiOptions<never, never, never>, Check>;
