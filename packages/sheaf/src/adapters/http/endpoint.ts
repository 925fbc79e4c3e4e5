import { batcherChecks } from "../../core/contract/settings.ts";
import { checkCount, checkFunction, checkOptions, type Check } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import {
  createBatcher,
  greedy,
  type BatchContext,
  type Batcher,
  type BatcherOptions,
  type BatchFunction,
  type Executor,
  type Result,
} from "../../index.ts";
import { responder } from "./responder.ts";
import { fastifyPlugin, type FastifyLike } from "./fastify.ts";
import { type ItemError, itemErrorOf, safely } from "./item-error.ts";
import { respondWeb } from "./web.ts";

/** The options of an endpoint beside a batcher's. */
export interface EndpointOptions<In> {
  /** Most bytes of a request. Default 1 MiB; above it 413. */
  readonly maxBodyBytes?: number | undefined;
  /** Most items of a request. Default 1000; above it 422. */
  readonly maxItems?: number | undefined;
  /**
   * Checks and types an item; an error that it throws answers that item with 422. Default: any JSON is an item. One nested deeper
   * than 500, or with a number that is none (`1e999`), never gets here: 422.
   */
  readonly parse?: ((item: unknown) => In) | undefined;
  /**
   * Turns an item's error into the reply to the client; `status` is 400 to 599. Default: its message (up to 1000 characters), `code`
   * and `status` (500 without one).
   */
  readonly errorOf?: ((error: unknown) => ItemError) | undefined;
}

export type BatchEndpointOptions<In, Out> = EndpointOptions<In> & BatcherOptions<In, Out>;

/** Options of a batcher that an endpoint over a one-item function has a use for. */
export type ItemEndpointOptions<In> = EndpointOptions<In> &
  Pick<
    BatcherOptions<In>,
    "concurrency" | "maxQueueSize" | "timeoutMs" | "runTimeoutMs" | "rateLimit" | "orderKey" | "dedupeKey" | "name" | "clock" | "signal" // prettier-ignore
  >;

/** Answers batches over HTTP. */
export interface Endpoint<In, Out> {
  /** For servers of web requests: Hono, Next, Bun, Deno. Can be destructured. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** A Fastify plugin: `app.register(endpoint.fastify, { url: "/batch" })`. `app.close()` closes the endpoint too. */
  readonly fastify: (app: FastifyLike, options: { readonly url?: string | undefined }) => Promise<void>;
  /** Runs the items; callers in this process may use it too. */
  readonly batcher: Batcher<In, Result<Out>>;
  /** Finishes accepted items; further ones get 503. */
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>;
}

const endpointDefaults = { maxBodyBytes: 2 ** 20, maxItems: 1000, concurrencyOfItems: 8 };

const endpointChecks: Record<keyof BatchEndpointOptions<unknown, unknown>, Check> = {
  maxBodyBytes: checkCount,
  maxItems: checkCount,
  parse: checkFunction,
  errorOf: checkFunction,
  ...batcherChecks,
};

/**
 * An endpoint over a batch function or an executor: items of concurrent requests share its batches.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function batchEndpoint<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatchEndpointOptions<In, Out> = {},
): Endpoint<In, Out> {
  checkOptions(options, endpointChecks);
  const { maxBodyBytes, maxItems, parse, errorOf, ...batcherOptions } = options;
  const { timeoutMs } = batcherOptions;
  return endpointOf(createBatcher(run, batcherOptions), { maxBodyBytes, maxItems, parse, errorOf, timeoutMs });
}

/**
 * An endpoint over a function of one item, which runs up to `concurrency` (default 8) of them at once: one request with
 * five items takes about as long as the slowest.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function itemEndpoint<In, Out>(
  runOne: (item: In, context: BatchContext) => Out | PromiseLike<Out>,
  options: ItemEndpointOptions<In> = {},
): Endpoint<In, Out> {
  if (typeof runOne !== "function") throw new TypeError(`itemEndpoint needs a function, got ${describe(runOne)}`);
  checkOptions(options, endpointChecks);
  const { maxBodyBytes, maxItems, parse, errorOf, ...batcherOptions } = options;
  const { timeoutMs, concurrency } = batcherOptions;
  const batcher = createBatcher<In, Out>(async ([item], context) => [await runOne(item!, context)], {
    ...batcherOptions,
    concurrency: concurrency ?? endpointDefaults.concurrencyOfItems,
    maxBatchSize: 1,
    policy: greedy(),
  });
  return endpointOf(batcher, { maxBodyBytes, maxItems, parse, errorOf, timeoutMs });
}

function endpointOf<In, Out>(
  batcher: Batcher<In, Result<Out>>,
  { maxBodyBytes, maxItems, parse, errorOf, timeoutMs }: EndpointOptions<In> & Pick<BatcherOptions<In>, "timeoutMs">,
): Endpoint<In, Out> {
  const respond = responder(batcher, {
    maxBodyBytes: maxBodyBytes ?? endpointDefaults.maxBodyBytes,
    maxItems: maxItems ?? endpointDefaults.maxItems,
    parse: parse ?? ((item: unknown) => item as In),
    errorOf: safely(errorOf ?? itemErrorOf),
    timeoutMs: timeoutMs ?? Infinity,
  });
  return {
    fetch: respondWeb(respond),
    fastify: fastifyPlugin(respond, () => batcher.close()),
    batcher,
    close: batcher.close,
  };
}
