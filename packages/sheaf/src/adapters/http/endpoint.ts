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

export interface EndpointOptions<In> {
  /**
   * Most bytes of a request; a larger one is answered with 413.
   * @default 1048576, which is 1 MiB
   */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Most items of a request; one with more is answered with 422.
   * @default 1000
   */
  readonly maxItems?: number | undefined;
  /**
   * Checks and types an item; an error that it throws answers that item with 422. An item nested deeper than 500, or
   * with a number out of range (`1e999`), is refused with 422 before.
   * @default any JSON is an item
   * @example
   * batchEndpoint(run, { parse: (item) => itemSchema.parse(item) });
   */
  readonly parse?: ((item: unknown) => In) | undefined;
  /**
   * Turns an item's error into the reply to the client; `status` is 400 to 599.
   * @default the error's message (up to 1000 characters), `code` and `status` (500 without one)
   * @example
   * batchEndpoint(run, { errorOf: () => ({ status: 500, code: "INTERNAL", message: "Try again later." }) });
   */
  readonly errorOf?: ((error: unknown) => ItemError) | undefined;
}

export interface BatchEndpointOptions<In, Out> extends EndpointOptions<In>, BatcherOptions<In, Out> {}

/** Options of `itemEndpoint`: those of an endpoint, and the batcher options that make sense for a function of one item. */
export interface ItemEndpointOptions<In>
  extends
    EndpointOptions<In>,
    Pick<
      BatcherOptions<In>,
      "maxQueueSize" | "timeoutMs" | "runTimeoutMs" | "rateLimit" | "orderKey" | "dedupeKey" | "name" | "clock"
    > {
  /**
   * Most items that run at once; integer >= 1.
   * @default 8
   */
  readonly concurrency?: number | undefined;
}

export interface Endpoint<In, Out> {
  /** For servers of web requests: Hono, Next, Bun, Deno. Can be destructured. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** A Fastify plugin: `app.register(endpoint.fastify, { url: "/batch" })`. `app.close()` closes the endpoint too. */
  readonly fastify: (
    app: FastifyLike,
    options: {
      /**
       * Path of the route.
       * @default "/"
       */
      readonly url?: string | undefined;
    },
  ) => Promise<void>;
  /** Runs the items; callers in this process may use it too. */
  readonly batcher: Batcher<In, Result<Out>>;
  /** Finishes accepted items; further ones get 503. */
  close(options?: {
    /**
     * Time for accepted calls to finish, in milliseconds.
     * @default none: as long as they take
     */
    readonly graceMs?: number | undefined;
  }): Promise<void>;
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
