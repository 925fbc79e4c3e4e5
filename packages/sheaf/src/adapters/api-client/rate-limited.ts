import type { BatchContext, BatchFunction, BatchResults } from "../../core/contract/executor.ts";
import type { Clock } from "../../core/runtime/runtime.ts";
import type { LearnedRateLimit, SentRequest } from "../../limits/learned-rate-limit.ts";
import type { RequestSize } from "../../limits/request-sizes.ts";
import { toldLimits, type HeadersLike } from "../../limits/told-limits.ts";
import { blamesInputs, withHints } from "./api-error.ts";
import { refusalOf, type Refusal } from "./refusals.ts";
import type { TokenScale } from "./tokens/token-scale.ts";

/** What a reply says besides its results. */
export interface Reply {
  /** As the API counted them. */
  readonly tokens?: number | undefined;
  readonly headers?: HeadersLike | undefined;
}

/** A batch function that reports its reply before it returns. */
export type ApiRun<In, Out> = (
  items: In[],
  context: BatchContext,
  replied: (reply: Reply) => void,
) => BatchResults<Out> | PromiseLike<BatchResults<Out>>;

/** How the requests of a batcher are counted. */
export interface Counting<In> {
  readonly limit: LearnedRateLimit;
  readonly scale: TokenScale;
  /** The text of an item; estimates are scaled by the kind of text. */
  readonly textOf: (item: In) => unknown;
  /** Tokens of an item, before they are scaled. */
  readonly estimate: (item: In) => number;
  /** The size of a request by the current, scaled estimates. */
  readonly sizeOf: (items: readonly In[]) => RequestSize;
  readonly maxPauseMs: number;
  readonly clock: Clock;
}

/** An estimate within this share of the API's count is good enough: no need to count the texts again. */
const rightEnough = 0.02;
/** The pause after a refusal that callers get at once, so that a queue of calls does not become a flood of requests. */
const pauseAfterFinalMs = 1000;

/**
 * Runs each batch once and learns from the reply what the API allows and how it counts. A batch refused for its rate goes back to the
 * queue, so it holds no slot meanwhile.
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
    // First, because the remaining limit in the reply does not include this request.
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
      // Less than one token a text is not a count: some gateways always say 0 or 1.
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
      // The API read the request but did not run it.
      if (blamesInputs(error)) context.reportWeight(0);
      throw error;
    }
  };
}
