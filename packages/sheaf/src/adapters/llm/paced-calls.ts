import type { Batcher } from "../../core/contract/batcher.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { BatchContext } from "../../core/contract/executor.ts";
import type { BatcherOptions, CallOptions } from "../../core/contract/options.ts";
import type { SharedRateLimit } from "../../core/contract/rate-limit.ts";
import { defaults } from "../../core/contract/options.ts";
import { batcherChecks } from "../../core/contract/settings.ts";
import { createBatcher } from "../../core/create-batcher.ts";
import { systemClock, type Clock } from "../../core/runtime/runtime.ts";
import type { LearnedRateLimit, SentRequest } from "../../limits/learned-rate-limit.ts";
import type { Ahead } from "../../limits/sharers.ts";
import { toldLimits, type HeadersLike } from "../../limits/told-limits.ts";
import { greedy } from "../../policies/greedy.ts";
import { checkFunction, checkOptions, checkSpan, type Check } from "../../shared/checks.ts";
import { limitOf } from "../api-client/api-batcher.ts";
import { blamesInputs, fieldsOf, withHints } from "../api-client/api-error.ts";
import { refusalOf } from "../api-client/refusals.ts";
import { TokenScale } from "../api-client/tokens/token-scale.ts";
import { defined } from "../../shared/defined.ts";
import { utf8Bytes } from "../shared/utf8-bytes.ts";
import { inputOf, mostOutputOf, outputIn, usageIn, type InputEstimate, type TokenUsage } from "./tokens-of.ts";
import { withWatchedStream, type StreamWatch } from "./watched-stream.ts";

/** What the function that makes a call can use and report. */
export interface PacedContext {
  /** Aborts with the call's own signal, with `runTimeoutMs`, and when `close` runs out of time. */
  readonly signal: AbortSignal;
  /** Takes the reply's headers, from which the limits are learned. Not needed where the result has `response.headers`. */
  onHeaders(headers: HeadersLike): void;
  /** Takes the provider's count. Not needed where the result, or a chunk of its stream, has `usage`. */
  onUsage(usage: TokenUsage): void;
  /**
   * The call counts as running until then, for a result that goes on and is not a stream. Resolve it with false if it was left.
   * `isCounted`: the headers came with a whole answer, which the provider has counted.
   */
  until(ended: PromiseLike<boolean | void>, isCounted?: boolean): void;
}

/** Options of `pacedCalls`. */
export interface PacedCallsOptions<In> extends Pick<
  BatcherOptions<In>,
  "maxQueueSize" | "rateLimit" | "maxPauseMs" | "fairKey" | "shareOf" | "clock"
> {
  /**
   * How long a call may wait before it is sent, in milliseconds; then it rejects with `TIMEOUT`, at once where its time cannot suffice.
   * @default none
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How long an answer may take, a stream's to its end, in milliseconds; then its run is abandoned.
   * @default 600000
   */
  readonly runTimeoutMs?: number | undefined;
  /**
   * Most calls in flight, streams to their end; integer >= 1.
   * @default 1000
   */
  readonly concurrency?: number | undefined;
  /**
   * Tokens of a call before it is sent; what is undefined is estimated.
   * @default from the texts of the request, and from `max_completion_tokens`, `max_output_tokens` or `max_tokens`
   */
  readonly estimate?: ((request: In) => TokenUsage) | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default "llm"
   */
  readonly name?: string | undefined;
}

/** How one call waits. */
export type PacedCallOptions = Pick<CallOptions, "signal" | "timeoutMs" | "priority" | "tag">;

/** Makes calls, each when the limits allow it. */
export interface PacedCalls<In, Out> {
  (request: In, options?: PacedCallOptions): Promise<Out>;
  /** Its statistics, `close()` and `subscribe()`; calls are made by the function itself. */
  readonly batcher: Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe" | "pending" | "drain" | "close">;
  /** How long a call would wait after all that wait now, in milliseconds. */
  expectedWaitMs(request: In): number;
  /** Its estimated tokens. */
  weigh(request: In): number;
}

/** No answer has said how long answers are. */
const firstOutput = 256;
/** How far one answer moves the expected length. */
const outputStep = 0.1;
/** The pause after a refusal that callers get at once. */
const pauseAfterFinalMs = 1000;

const { maxQueueSize, rateLimit, maxPauseMs, fairKey, shareOf, clock, runTimeoutMs, concurrency, name } = batcherChecks;
export const pacedChecks: Record<keyof PacedCallsOptions<never>, Check> = {
  maxQueueSize, rateLimit, maxPauseMs, fairKey, shareOf, clock, runTimeoutMs, concurrency, name,
  timeoutMs: checkSpan,
  estimate: checkFunction,
}; // prettier-ignore

/**
 * Paces calls that do not batch by the limits of their provider: requests and tokens a minute, learned from its replies or given. Tokens
 * are estimated before a call and settled by the reply's `usage`; a stream settles when it ends. A call that the provider refuses with
 * 429 waits for its time and goes again. `run` makes one call, with the retries of its client turned off.
 * @throws {TypeError | RangeError} for a wrong option.
 * @example
 * const chat = pacedCalls((body, { signal }) => client.chat.completions.create(body, { signal, maxRetries: 0 }).withResponse());
 * const { data } = await chat({ model: "gpt-5-mini", messages }, { priority: "bulk" });
 */
export function pacedCalls<In, Out>(
  run: (request: In, context: PacedContext) => Out | PromiseLike<Out>,
  options: PacedCallsOptions<In> = {},
): PacedCalls<In, Out> {
  checkFunction("run", run);
  checkOptions(options, pacedChecks);
  const pacer = new Pacer(run, options);
  return Object.assign((request: In, call?: PacedCallOptions) => pacer.call(request, call), {
    batcher: pacer.batcher,
    expectedWaitMs: (request: In) => pacer.waitMs(pacer.estimate(request)),
    weigh: (request: In) => weightOf(pacer.estimate(request)),
  });
}

/** The estimate of a call. */
interface Estimate {
  readonly text: InputEstimate;
  readonly input: number;
  readonly output: number;
  /** The request says how long its answer may be. */
  readonly isBound: boolean;
}

const weightOf = ({ input, output }: Estimate): number => input + output;

/** One call, from its arrival until it settles. */
class Call<In> {
  readonly request: In;
  readonly estimate: Estimate;
  /** The caller's own; it aborts the run too. */
  readonly signal: AbortSignal | undefined;
  readonly isBulk: boolean;
  readonly deadlineAtMs: number;
  /** Aborts while it waits: by the caller, or at the deadline. */
  readonly waitSignal: AbortSignal | undefined;
  /** Called when it begins to wait, and when it ends. */
  readonly waits: (isWaiting: boolean) => void;

  constructor(request: In, estimate: Estimate, options: PacedCallOptions, deadlineAtMs: number, pacer: Waiting) {
    const { signal, priority } = options;
    this.isBulk = priority === "bulk";
    this.request = request;
    this.estimate = estimate;
    this.signal = signal;
    this.deadlineAtMs = deadlineAtMs;
    const late = deadlineAtMs < Infinity ? new AbortController() : undefined;
    this.waitSignal = late === undefined || signal === undefined ? (late?.signal ?? signal) : AbortSignal.any([signal, late.signal]); // prettier-ignore
    let wasWaiting = false;
    let cancel: (() => void) | undefined;
    this.waits = (isWaiting) => {
      if (isWaiting !== wasWaiting) pacer.count(this.estimate, isWaiting ? 1 : -1);
      wasWaiting = isWaiting;
      cancel?.();
      cancel =
        isWaiting && late !== undefined ? pacer.atMs(deadlineAtMs, () => late.abort(pacer.late(this))) : undefined;
    };
  }

  get weight(): number {
    return weightOf(this.estimate);
  }
}

/** What a call tells while it waits. */
interface Waiting {
  count(estimate: Estimate, sign: 1 | -1): void;
  atMs(atMs: number, callback: () => void): () => void;
  late(call: Pick<Call<never>, "estimate">): Error;
}

class Pacer<In, Out> implements Waiting {
  readonly batcher: Batcher<Call<In>, unknown>;
  readonly #run: (request: In, context: PacedContext) => Out | PromiseLike<Out>;
  readonly #estimate: (request: In) => TokenUsage;
  readonly #limit: LearnedRateLimit;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #timeoutMs: number;
  readonly #maxPauseMs: number;
  readonly #scale = new TokenScale();
  #answers: number | undefined;
  /** Of the calls that wait. */
  readonly #waiting = { runs: 0, items: 0, weight: 0, output: 0 };

  constructor(run: (request: In, context: PacedContext) => Out | PromiseLike<Out>, options: PacedCallsOptions<In>) {
    const { clock = systemClock, name = "llm", maxPauseMs = defaults.maxPauseMs, timeoutMs = Infinity } = options;
    const { rateLimit, estimate = () => ({}), fairKey, shareOf, maxQueueSize } = options;
    const { concurrency = 1000, runTimeoutMs = 600_000 } = options;
    const limit = limitOf(rateLimit, clock);
    this.#run = run;
    this.#estimate = estimate;
    this.#limit = limit;
    this.#clock = clock;
    this.#name = name;
    this.#timeoutMs = timeoutMs;
    this.#maxPauseMs = maxPauseMs;
    const outputOf = (call: unknown): number => (call as Call<In> | undefined)?.estimate.output ?? 0;
    const seats: SharedRateLimit = { join: (wake) => limit.join(wake, outputOf), stats: () => limit.stats() };
    this.batcher = createBatcher(([call], context) => this.#send(call!, context), {
      name,
      clock,
      concurrency,
      runTimeoutMs,
      maxPauseMs,
      maxBatchSize: 1,
      // Calls are then chosen one by one, and the limit is asked about the one that goes next.
      maxBatchWeight: Number.MAX_SAFE_INTEGER,
      weigh: (call: Call<In>) => call.weight,
      policy: greedy(),
      rateLimit: seats,
      ...defined({ maxQueueSize, shareOf, fairKey: fairKey && (({ request }: Call<In>) => fairKey(request)) }),
    });
  }

  estimate(request: In): Estimate {
    const given = this.#estimate(request);
    const text = given.input === undefined ? inputOf(request) : { tokens: given.input, longest: "" };
    const input = given.input ?? this.#scale.weigh(text.longest, text.tokens);
    const most = mostOutputOf(request);
    const output = given.output ?? most ?? Math.ceil(this.#answers ?? firstOutput);
    return { text, input, output, isBound: most !== undefined };
  }

  /** How long a call would wait after `ahead`: by default all that wait. */
  waitMs({ input, output }: Estimate, ahead: Ahead = this.#waiting): number {
    return this.#limit.waitMs(this.#clock.now(), input + output, output, ahead);
  }

  async call(request: In, options: PacedCallOptions = {}): Promise<Out> {
    const { timeoutMs = this.#timeoutMs, priority, tag } = options;
    const estimate = this.estimate(request);
    const call = new Call(request, estimate, options, this.#clock.now() + timeoutMs, this);
    if (this.waitMs(estimate, none) > timeoutMs) throw this.late(call);
    call.waits(true);
    try {
      return (await this.batcher(call, { signal: call.waitSignal, priority, tag })) as Out;
    } finally {
      call.waits(false);
    }
  }

  count({ input, output }: Estimate, sign: 1 | -1): void {
    const waiting = this.#waiting;
    waiting.runs += sign;
    waiting.items += sign;
    waiting.weight += sign * (input + output);
    waiting.output += sign * output;
  }

  atMs(atMs: number, callback: () => void): () => void {
    return this.#clock.after(Math.max(0, atMs - this.#clock.now()), callback);
  }

  late({ estimate }: Pick<Call<never>, "estimate">): Error {
    const retryAfterMs = Math.ceil(this.waitMs(estimate));
    const message = `${this.#name}: the limits leave no room for the call before its deadline. Retry in ${retryAfterMs} ms.`;
    return new BatcherError("TIMEOUT", message, { retryAfterMs });
  }

  async #send(call: Call<In>, context: BatchContext): Promise<[Out]> {
    call.waits(false);
    const { text, output } = call.estimate;
    const size = { items: 1, tokens: call.weight, bytes: utf8Bytes(text.longest) };
    const request = this.#limit.sent(this.#clock.now(), size, output, call.estimate.isBound ? 0 : output);
    const seen = new Seen(call.estimate);
    const signal = call.signal === undefined ? context.signal : AbortSignal.any([call.signal, context.signal]);
    let headers: HeadersLike | undefined;
    let ended: PromiseLike<boolean | void> | undefined;
    let isCounted = false;
    let result: Out;
    try {
      result = await this.#run(call.request, {
        signal,
        onHeaders: (told) => void (headers = told),
        onUsage: (usage) => seen.usage(usage),
        until: (promise, counted = false) => void ([ended, isCounted] = [promise, counted]),
      });
    } catch (error) {
      throw this.#failed(error, call, request, context, headers);
    }
    const watched = withWatchedStream(result, seen);
    if (watched !== undefined) ended = seen.whenEnded;
    const told = toldLimits(headers ?? (fieldsOf(fieldsOf(result)["response"])["headers"] as HeadersLike | undefined));
    if (ended === undefined) {
      seen.usage(usageIn(result));
      this.#limit.accepted(request, this.#clock.now(), this.#settle(call, seen, context), told);
      return [result];
    }
    if (!isCounted) this.#limit.accepted(request, this.#clock.now(), undefined, told, true);
    context.answer(0, watched ?? result);
    const isWhole = await Promise.resolve(ended).then(
      (whole) => whole !== false,
      () => false,
    );
    seen.ended(isWhole);
    const tokens = this.#settle(call, seen, context);
    // What is left according to the reply already lacks what it gave back.
    if (isCounted) this.#limit.accepted(request, this.#clock.now(), tokens, told);
    else this.#limit.counted(request, tokens ?? size.tokens);
    return [watched ?? result];
  }

  /** Counts what the call has used instead of its estimate. @returns its tokens; undefined where nothing told them. */
  #settle({ estimate, isBulk }: Call<In>, seen: Seen, context: BatchContext): number | undefined {
    const { input, output } = seen.used;
    if (input !== undefined) this.#scale.learn([estimate.text.longest], [estimate.text.tokens], input);
    if (output !== undefined && seen.isWhole)
      this.#answers = this.#answers === undefined ? output : this.#answers + outputStep * (output - this.#answers);
    if (input === undefined && output === undefined) return undefined;
    const usedOutput = output ?? estimate.output;
    const tokens = (input ?? estimate.input) + usedOutput;
    context.reportWeight(tokens);
    this.#limit.settle(
      this.#clock.now(),
      tokens - estimate.input - estimate.output,
      usedOutput - estimate.output,
      isBulk,
    );
    return tokens;
  }

  /** @returns the error to throw. */
  #failed(
    error: unknown,
    call: Call<In>,
    request: SentRequest,
    context: BatchContext,
    headers: HeadersLike | undefined,
  ): unknown {
    const nowMs = this.#clock.now();
    const refusal = refusalOf(error, this.#maxPauseMs, headers);
    const told = toldLimits(refusal?.headers ?? headers);
    // First, because what is left according to the reply does not include this request.
    if (refusal !== undefined || blamesInputs(error)) {
      context.reportWeight(0);
      this.#limit.settle(nowMs, -call.weight, -call.estimate.output, call.isBulk);
    }
    if (refusal === undefined || refusal.isFinal) {
      this.#limit.ended(request, nowMs, told);
      if (refusal !== undefined) context.pause(pauseAfterFinalMs);
      return error;
    }
    const pauseMs = this.#limit.refused(request, nowMs, told, refusal.retryAfterMs);
    context.pause(pauseMs);
    if (nowMs + pauseMs < call.deadlineAtMs) {
      call.waits(true);
      context.putBack();
    }
    return withHints(error, { status: 429, retryAfterMs: pauseMs, itemIndex: undefined });
  }
}

/** What is seen of a call's answer. */
class Seen implements StreamWatch {
  isWhole = true;
  readonly whenEnded: Promise<boolean>;
  #input: number | undefined;
  #output: number | undefined;
  /** Estimated from the chunks of a stream. */
  #streamed = 0;
  #end!: (isWhole: boolean) => void;
  readonly #estimate: Estimate;

  constructor(estimate: Estimate) {
    this.#estimate = estimate;
    this.whenEnded = new Promise((resolve) => (this.#end = resolve));
  }

  usage({ input, output }: TokenUsage): void {
    this.#input = input ?? this.#input;
    this.#output = output ?? this.#output;
  }

  chunk(chunk: unknown): void {
    this.usage(usageIn(chunk));
    this.#streamed += outputIn(chunk);
  }

  ended(isWhole: boolean): void {
    this.isWhole = isWhole;
    this.#end(isWhole);
  }

  /** A stream that was left has told no count of its own. */
  get used(): TokenUsage {
    if (this.isWhole) return { input: this.#input, output: this.#output ?? (this.#streamed || undefined) };
    return { input: this.#input ?? this.#estimate.input, output: Math.max(this.#output ?? 0, this.#streamed) };
  }
}

const none = { runs: 0, items: 0, weight: 0, output: 0 };
