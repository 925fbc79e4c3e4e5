import type { BatchContext, BatchFunction, BatchResults } from "../../core/contract/executor.ts";
import type { Clock } from "../../core/runtime/runtime.ts";
import type { LearnedRateLimit, SentRequest } from "../../limits/learned-rate-limit.ts";
import type { RequestSize } from "../../limits/request-sizes.ts";
import { toldLimits, type HeadersLike } from "../../limits/told-limits.ts";
import { blamesInputs, withHints } from "./api-error.ts";
import { refusalOf, type Refusal } from "./refusals.ts";
import type { TokenScale } from "./tokens/token-scale.ts";

/** The facts of a reply beside its results. */
export interface Reply {
  /** As the API counted them. */
  readonly tokens?: number | undefined;
  readonly headers?: HeadersLike | undefined;
}

/** A batch function that tells the facts of its reply, before it returns. */
export type ApiRun<In, Out> = (
  items: In[],
  context: BatchContext,
  replied: (reply: Reply) => void,
) => BatchResults<Out> | PromiseLike<BatchResults<Out>>;

/** How the requests of a batcher are counted. */
export interface Counting<In> {
  readonly limit: LearnedRateLimit;
  readonly scale: TokenScale;
  /** The text of an item, by whose kind estimates are scaled. */
  readonly textOf: (item: In) => unknown;
  /** Tokens of an item, before they are scaled. */
  readonly estimate: (item: In) => number;
  /** With estimates as they are scaled now. */
  readonly sizeOf: (items: readonly In[]) => RequestSize;
  readonly maxPauseMs: number;
  readonly clock: Clock;
}

/** Within this share of the API's count an estimate teaches nothing that is worth counting the texts again. */
const rightEnough = 0.02;
/** After a refusal that is not waited for: so that a queue of calls does not become a flood of requests. */
const pauseAfterFinalMs = 1000;

/**
 * Runs each batch once, and learns from the reply what the API allows and how it counts. A batch that the API refuses for its
 * rate goes back to the queue: no slot is held meanwhile.
 */
export function withRateLimit<In, Out>(run: ApiRun<In, Out>, counting: Counting<In>): BatchFunction<In, Out> {
  const { limit, scale, textOf, estimate, sizeOf, maxPauseMs, clock } = counting;

  const refused = (error: unknown, request: SentRequest, refusal: Refusal, context: BatchContext): unknown => {
    const told = toldLimits(refusal.headers);
    if (refusal.isFinal) {
      limit.ended(request, clock.now(), told);
      context.pause(pauseAfterFinalMs);
      return error;
    }
    // First: the rest of the limit that the reply tells does not count this request.
    context.reportWeight(0);
    const pauseMs = limit.refused(request, clock.now(), told, refusal.retryAfterMs);
    context.pause(pauseMs);
    context.putBack();
    return withHints(error, { status: 429, retryAfterMs: pauseMs, itemIndex: undefined });
  };

  return async (items, context) => {
    const request = limit.sent(clock.now(), sizeOf(items));
    let reply: Reply = {};
    try {
      const results = await run(items, context, (said) => (reply = said));
      const counted = reply.tokens;
      // A count of less than a token a text is none: some gateways always say 0 or 1.
      const tokens = counted !== undefined && Number.isFinite(counted) && counted >= items.length ? counted : undefined;
      if (tokens !== undefined) {
        const isRight = Math.abs(tokens - request.size.tokens) <= rightEnough * tokens;
        if (!isRight) scale.learn(items.map(textOf), items.map(estimate), tokens);
        context.reportWeight(tokens);
      }
      limit.accepted(request, clock.now(), tokens, toldLimits(reply.headers));
      return results;
    } catch (error) {
      const refusal = refusalOf(error, maxPauseMs, reply.headers);
      if (refusal !== undefined) throw refused(error, request, refusal, context);
      limit.ended(request, clock.now());
      // It was read and not run.
      if (blamesInputs(error)) context.reportWeight(0);
      throw error;
    }
  };
}
