import type { BatchContext } from "../../core/contract/batch-context.ts";
import type { BatchFunction, BatchResults } from "../../core/contract/executor.ts";
import type { Clock } from "../../core/runtime/clock.ts";
import type { LearnedRateLimit, SentRequest } from "../../limits/learned-rate-limit.ts";
import { toldLimits, type HeadersLike } from "../../limits/told-limits.ts";
import { withHints } from "./api-error.ts";
import { namedCapOf, refusalOf, type Refusal } from "./refusals.ts";
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
  readonly maxPauseMs: number;
  readonly clock: Clock;
}

/** Within this share of the API's count an estimate teaches nothing that is worth counting the texts again. */
const rightEnough = 0.05;
/** After a refusal that is not waited for: so that a queue of calls does not become a flood of requests. */
const pauseAfterFinalMs = 1000;

/**
 * Runs each batch once, and learns from the reply what the API allows and how it counts. A batch that the API refuses for its
 * rate, or as larger than it takes, goes back to the queue: no slot is held meanwhile.
 */
export function withRateLimit<In, Out>(run: ApiRun<In, Out>, counting: Counting<In>): BatchFunction<In, Out> {
  const { limit, scale, textOf, estimate, maxPauseMs, clock } = counting;

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
    const request = limit.sent(clock.now(), items.length);
    let reply: Reply = {};
    try {
      const results = await run(items, context, (said) => (reply = said));
      const { tokens } = reply;
      if (tokens !== undefined && Number.isFinite(tokens) && tokens >= 0) {
        const isRight = Math.abs(tokens - request.weight) <= rightEnough * tokens;
        if (!isRight) scale.learn(items.map(textOf), items.map(estimate), tokens);
        context.reportWeight(tokens);
      }
      limit.accepted(request, clock.now(), tokens ?? request.weight, toldLimits(reply.headers));
      return results;
    } catch (error) {
      const refusal = refusalOf(error, maxPauseMs, reply.headers);
      if (refusal !== undefined) throw refused(error, request, refusal, context);
      const cap = namedCapOf(error);
      limit.ended(request, clock.now());
      if (cap !== undefined && limit.tooLarge(request, cap)) context.putBack();
      throw error;
    }
  };
}
