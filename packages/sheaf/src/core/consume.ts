import { mayBeOfItems } from "./dispatch/bisect.ts";
import { type Clock, Alarm, systemClock, within } from "./runtime/runtime.ts";
import { newAbortController, consumerOf, type ConsumerView, type AbortSignalLike } from "./runtime/signals.ts";
import { warnOnce } from "./runtime/warnings.ts";
import { iteratorOf } from "./calls/map.ts";
import type { Batcher } from "./contract/batcher.ts";
import { BatcherError } from "./contract/errors.ts";
import { defaults, type CallOptions } from "./contract/options.ts";
import { checkClock, checkSignal } from "./contract/settings.ts";
import { check, checkFunction, checkOptions, checkSpan, isInteger, oneOf, type Check } from "../shared/checks.ts";
import { propertyOf } from "../shared/describe.ts";

/** Messages one by one, or a function that reads up to `room` messages from the broker. */
export type MessageSource<Message> =
  AsyncIterable<Message> | Iterable<Message> | ((room: number) => PromiseLike<Iterable<Message> | null | undefined>);

/** How `consume` reads from a broker and answers it. What a callback returns is awaited; what it throws is reported. */
export interface ConsumeOptions<Message, Out> {
  /** Acknowledges a message whose call has its result. */
  readonly ack: (message: Message, result: Out) => unknown;
  /** Refuses a message whose call has failed: the broker tries it again later, or puts it aside. */
  readonly nack: (message: Message, error: unknown) => unknown;
  /**
   * Hands back a message that did not run.
   * @default nothing is sent: the broker delivers it again when its lease has run out
   */
  readonly release?: ((message: Message) => unknown) | undefined;
  /**
   * After a `nack` the later messages of the same `orderKey` that have not started go on (`"continue"`), or are handed back behind
   * it (`"handBack"`).
   * @default "continue"
   * @see BatcherOptions.orderKey
   */
  readonly onNack?: "continue" | "handBack" | undefined;
  /**
   * Extends the lease of a message that waits or runs, from now by `leaseMs`. Called after about half of it.
   * @default none: leases are not extended
   * @see leaseMs
   */
  readonly extend?: ((message: Message) => unknown) | undefined;
  /**
   * How long the broker waits for the answer to a message before it delivers it again, in milliseconds. An answer that takes
   * longer to send is given up, and reported.
   * @default 30000
   */
  readonly leaseMs?: number | undefined;
  /**
   * Most messages that are read and not yet answered; integer >= 1.
   * @default twice the items that a batcher can have in flight, at most 1000; 1000 for another function
   */
  readonly prefetch?: number | undefined;
  /**
   * Aborting it ends the consumer: it reads no more, hands back what has not started, and finishes what has.
   * @default none
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Gets what `ack`, `nack`, `release` and `extend` throw. The message is delivered again when its lease has run out.
   * @default the first one is printed
   */
  readonly onError?: ((error: unknown, message: Message) => void) | undefined;
  /**
   * The source of time, for tests and simulations.
   * @default the system's clock
   */
  readonly clock?: Clock | undefined;
}

/** The default of an option that is not given. */
export const consumeDefaults = { onNack: "continue", leaseMs: 30_000 } as const;

/** Most messages that are read and not yet answered. */
const mostHeld = 1000;
/** Looks at a lease before it runs out; one that is older than a third at a look is extended. */
const looksPerLease = 3;

type Call<Message, Out> = (message: Message, options: CallOptions) => Out | PromiseLike<Out>;

/**
 * Makes one call for each message of a broker, and answers each by its own outcome, as soon as it is known: `ack` with the
 * result, `nack` with the error. A call that is refused (`QUEUE_FULL`, an error with `retryAfterMs`) is made again later, and
 * nothing is read until then. Delivery is the broker's: at least once.
 * @param call a batcher, or a function that passes its second argument on to one: a signal that takes back waiting calls.
 * @returns when the source has ended or `signal` has aborted, and every message that was read has been answered.
 * @throws {TypeError | RangeError} for a wrong argument; else what the source threw, or `CLOSED`, after the last answer.
 */
export async function consume<Message, Out>(
  messages: MessageSource<Message>,
  call: Call<Message, Out>,
  options: ConsumeOptions<Message, Out>,
): Promise<void> {
  checkFunction("call", call);
  checkOptions(options, consumeChecks);
  for (const name of ["ack", "nack"] as const) checkFunction(name, options[name]);
  const watched = options.signal as unknown as AbortSignalLike | undefined;
  await new Consumer(messages, call, options).run(watched);
}

/** A message from when it is read until it has been answered. */
interface Held<Message> {
  readonly message: Message;
  /** Among all that were read. */
  readonly order: number;
  /** The look since which its lease runs, or its answer is under way. */
  since: number;
  isAnswered: boolean;
  extending: Promise<unknown> | undefined;
  /** What its refusals asked it to wait, together. */
  refusedMs: number;
}

class Consumer<Message, Out> {
  readonly #options: ConsumeOptions<Message, Out>;
  readonly #call: Call<Message, Out>;
  readonly #leaseMs: number;
  readonly #clock: Clock;
  /** Undefined at the end of the source. */
  readonly #read: () => Promise<Iterable<Message> | undefined>;
  readonly #closeSource: () => unknown;
  readonly #held: Set<Held<Message>> = new Set();
  /** Refused calls: they are made again in the order of their messages. */
  readonly #refused: Held<Message>[] = [];
  readonly #releasing: Held<Message>[] = [];
  readonly #retry: Alarm;
  readonly #withdrawal = newAbortController();
  /** The last error, and the messages that failed with it. */
  #shared: { readonly error: unknown; messages: number } = { error: undefined, messages: 0 };
  /** So many messages are called alone next. */
  #alone = 0;
  readonly #callOptions: CallOptions = { signal: this.#withdrawal.signal };
  /** Seen by the batcher of the calls, through their signal. */
  readonly #view: ConsumerView = {
    stopped: new Map(),
    stops: (error) => !(error instanceof Behind) && (this.#options.onNack === "handBack" || isRefusal(error)),
    behind: (error) => new Behind(error),
  };
  /** Refusals whose messages were handed back: those behind them are, too. */
  readonly #givenUp = new Set<unknown>();
  readonly #warn = warnOnce();
  #count = 0;
  #look = 0;
  #isLooking = false;
  #reading: Promise<void> | undefined;
  #willRead = false;
  #isStopped = false;
  /** No more is read; then `#isClosed`: no message that was being read can come any more. */
  #isOver = false;
  #isClosed = false;
  #failure: { readonly error: unknown } | undefined;
  #end: () => void = () => undefined;

  constructor(messages: MessageSource<Message>, call: Call<Message, Out>, options: ConsumeOptions<Message, Out>) {
    this.#options = options;
    this.#call = call;
    this.#leaseMs = options.leaseMs ?? consumeDefaults.leaseMs;
    this.#clock = options.clock ?? systemClock;
    this.#retry = new Alarm(this.#clock, () => this.#callAgain());
    Object.defineProperty(this.#withdrawal.signal, consumerOf, { value: this.#view });
    if (typeof messages === "function") {
      this.#read = async () => (await messages(this.#room)) ?? [];
      this.#closeSource = () => undefined;
    } else {
      const iterator = iteratorOf(messages, "messages");
      this.#read = async () => {
        const { done, value } = await iterator.next();
        return done === true ? undefined : [value];
      };
      this.#closeSource = () => iterator.return?.();
    }
  }

  async run(signal: AbortSignalLike | undefined): Promise<void> {
    const ended = new Promise<void>((resolve) => (this.#end = resolve));
    const stop = (): void => this.#stop(signal!.reason);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    this.#readOn();
    await ended;
    signal?.removeEventListener("abort", stop);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  get #reason(): unknown {
    return (this.#withdrawal.signal as unknown as AbortSignalLike).reason;
  }

  get #room(): number {
    return this.#prefetch - this.#held.size;
  }

  get #prefetch(): number {
    const { capacity, pending } = this.#call as Partial<Batcher<Message, Out>>;
    if (this.#options.prefetch !== undefined || capacity === undefined) return this.#options.prefetch ?? mostHeld;
    const { concurrency, maxBatchSize } = capacity;
    // Where the number of batches in flight is learned, it is that of now and one more, so that it can grow. A front end of
    // a fleet does not know it.
    const batches = concurrency === Infinity ? concurrency : Math.min(concurrency, pending!.inFlight + 1);
    return Math.min(mostHeld, 2 * maxBatchSize * batches);
  }

  #readOn(): void {
    if (this.#reading !== undefined || this.#isOver || this.#refused.length > 0 || this.#room <= 0) return;
    this.#reading = this.#read().then(this.#arrived).catch(this.#sourceFailed);
  }

  /** At the end of this turn: the calls of a batch end together, and what is read then has the room of them all. */
  #readSoon(): void {
    if (this.#willRead || this.#reading !== undefined || this.#isOver) return;
    this.#willRead = true;
    this.#clock.after(0, () => {
      this.#willRead = false;
      this.#readOn();
    });
  }

  readonly #arrived = (portion: Iterable<Message> | undefined): void => {
    let isEmpty = true;
    for (const message of portion ?? []) {
      isEmpty = false;
      const held = {
        message,
        order: this.#count++,
        since: this.#look,
        isAnswered: false,
        extending: undefined,
        refusedMs: 0,
      };
      this.#held.add(held);
      if (this.#isStopped) this.#release(held);
      else if (this.#refused.length > 0) this.#refused.push(held);
      else this.#make(held);
    }
    this.#reading = undefined;
    if (portion === undefined) this.#close();
    if (!this.#isLooking && this.#held.size > 0) this.#lookLater();
    // A source that has nothing, and says so at once, must not keep everything else from running. And where there is no more
    // room, there may be once these calls have been dispatched.
    if (isEmpty || this.#room <= 0) this.#readSoon();
    else this.#readOn();
  };

  readonly #sourceFailed = (error: unknown): void => {
    this.#reading = undefined;
    // A source that obeys the same signal may end by an error, which nobody has to hear of.
    const isAbort = error === this.#reason || propertyOf(error, "name") === "AbortError";
    if (!this.#isStopped || !isAbort) this.#failure ??= { error };
    this.#close();
  };

  /** Reads no more, hands back what has not started, and lets what has started finish. */
  #stop(reason: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#retry.set(Infinity);
    for (const held of this.#refused.splice(0)) this.#release(held);
    this.#withdrawal.abort(reason);
    if (this.#isOver) return;
    this.#isOver = true;
    const closing = promised(this.#closeSource).catch(this.#sourceFailed);
    // What is being read now is handed back too, when it comes.
    void within(Promise.all([this.#reading, closing]), this.#leaseMs, this.#clock).then(() => this.#close());
  }

  #close(): void {
    this.#isOver = true;
    this.#isClosed = true;
    if (this.#held.size === 0) this.#end();
  }

  #make(held: Held<Message>): void {
    const options = this.#alone > 0 ? { ...this.#callOptions, alone: true } : this.#callOptions;
    this.#alone = Math.max(0, this.#alone - 1);
    promised(() => this.#call(held.message, options)).then(
      (result) => void this.#answer(held, () => this.#options.ack(held.message, result)),
      (error: unknown) => this.#failed(held, error),
    );
  }

  #failed(held: Held<Message>, error: unknown): void {
    const isClosed = error instanceof BatcherError && error.code === "CLOSED";
    if (isClosed) {
      this.#failure ??= { error };
      this.#stop(error);
    }
    const isBehind = error instanceof Behind;
    const cause = isBehind ? error.cause : error;
    const waitMs = refusalMs(cause);
    const isWithdrawn = this.#isStopped && (error === this.#reason || isBehind || waitMs !== undefined);
    if (isClosed || isWithdrawn || this.#givenUp.has(cause)) return this.#release(held);
    if (waitMs === undefined) {
      this.#goOnSoon();
      if (isBehind) return this.#release(held);
      this.#failedWith(error);
      return void this.#answer(held, () => this.#options.nack(held.message, error));
    }
    held.refusedMs += waitMs;
    if (held.refusedMs > defaults.maxPauseMs) {
      this.#givenUp.add(cause);
      this.#goOnSoon();
      return this.#release(held);
    }
    this.#refused.push(held);
    const { atMs } = this.#retry;
    this.#retry.set(Math.max(atMs === Infinity ? 0 : atMs, this.#clock.now() + waitMs));
  }

  /** Messages that fail with one error were in one batch: as many as come back go alone, so that the bad one fails no other again. */
  #failedWith(error: unknown): void {
    if (error !== this.#shared.error) this.#shared = { error, messages: 0 };
    if (++this.#shared.messages > 1 && mayBeOfItems(error)) this.#alone += this.#shared.messages === 2 ? 2 : 1;
  }

  /** At the end of this turn, when the messages behind a failed one are back, the next of its key may run. */
  #goOnSoon(): void {
    if (this.#view.stopped.size > 0) this.#clock.after(0, () => this.#refused.length === 0 && this.#goOn());
  }

  #goOn(): void {
    this.#view.stopped.clear();
    this.#givenUp.clear();
  }

  /** One call, and while none is refused twice as many in each turn: a queue that is still full refuses few. */
  #callAgain(count: number = 1): void {
    const { stopped } = this.#view;
    // The key of a message that went back stays: those behind it go back too when they are called.
    for (const [key, { error }] of stopped) if (isRefusal(error) && !this.#givenUp.has(error)) stopped.delete(key);
    for (const held of inOrder(this.#refused).splice(0, count)) this.#make(held);
    this.#clock.after(0, () => {
      if (this.#retry.atMs !== Infinity) return;
      if (this.#refused.length > 0) return this.#callAgain(2 * count);
      this.#goOn();
      this.#readOn();
    });
  }

  /** At the end of this turn, in the order in which they were read: many brokers deliver them again as they come back. */
  #release(held: Held<Message>): void {
    if (this.#releasing.push(held) > 1) return;
    this.#clock.after(0, () => {
      for (const each of inOrder(this.#releasing.splice(0)))
        void this.#answer(each, () => this.#options.release?.(each.message));
    });
  }

  async #answer(held: Held<Message>, send: () => unknown): Promise<void> {
    held.isAnswered = true;
    held.since = this.#look;
    // An extension that arrives after the answer would take it back.
    if (held.extending !== undefined) await held.extending;
    held.since = this.#look;
    try {
      const sent = send();
      if (typeof propertyOf(sent, "then") === "function") await sent;
    } catch (error) {
      this.#report(error, held);
    }
    this.#drop(held);
  }

  #drop(held: Held<Message>): void {
    this.#held.delete(held);
    if (this.#isClosed && this.#held.size === 0) this.#end();
    else this.#readSoon();
  }

  #lookLater(): void {
    this.#isLooking = true;
    this.#clock.after(this.#leaseMs / looksPerLease, () => {
      this.#look++;
      this.#isLooking = false;
      for (const held of this.#held) this.#lookAt(held);
      if (this.#held.size > 0) this.#lookLater();
    });
  }

  #lookAt(held: Held<Message>): void {
    const looks = this.#look - held.since;
    if (held.isAnswered) {
      if (looks <= looksPerLease) return;
      this.#report(new Error(`The answer to a message took longer than its lease (leaseMs ${this.#leaseMs}).`), held);
      return this.#drop(held);
    }
    const { extend } = this.#options;
    if (extend === undefined || held.extending !== undefined || looks < 2) return;
    held.since = this.#look;
    const extending = promised(() => extend(held.message)).catch((error: unknown) => {
      held.since--; // so that the next look tries again
      this.#report(error, held);
    });
    held.extending = within(extending, this.#leaseMs, this.#clock).then(() => (held.extending = undefined));
  }

  #report(error: unknown, { message }: Held<Message>): void {
    try {
      if (this.#options.onError !== undefined) this.#options.onError(error, message);
      else this.#warn("consume: an answer to the broker failed:", error);
    } catch (thrown) {
      this.#warn("consume: onError threw:", thrown);
    }
  }
}

/** Rejects a message that did not run because one before it in its order key failed with `cause`. */
class Behind extends Error {
  constructor(cause: unknown) {
    super("A message before it in its order key has failed.", { cause });
  }
}

const isRefusal = (error: unknown): boolean => refusalMs(error) !== undefined;

const inOrder = <Message>(held: Held<Message>[]): Held<Message>[] => held.sort((one, other) => one.order - other.order);

/** How long a refusal asks to wait, in milliseconds; undefined for an error of the message itself. */
function refusalMs(error: unknown): number | undefined {
  const details = error instanceof BatcherError ? error.details : undefined;
  // `drainMs` is when the whole queue is through; there is room before that.
  if (details !== undefined && propertyOf(error, "code") === "QUEUE_FULL")
    return Math.min(1000, Math.max(10, Number(details["drainMs"] ?? 100)));
  const hungMs = details?.["hungRuns"] === undefined ? undefined : 1000;
  const waitMs = hungMs ?? details?.["restartInMs"] ?? propertyOf(error, "retryAfterMs");
  return typeof waitMs === "number" && waitMs >= 0 && waitMs < Infinity ? Math.max(10, waitMs) : undefined;
}

/** What a function of the user gives or throws, as a promise. */
async function promised<T>(work: () => T | PromiseLike<T>): Promise<T> {
  return work();
}

const consumeChecks: Record<keyof ConsumeOptions<never, never>, Check> = {
  ack: checkFunction,
  nack: checkFunction,
  release: checkFunction,
  onNack: oneOf("continue", "handBack"),
  extend: checkFunction,
  leaseMs: checkSpan,
  prefetch: (name, value) => check(isInteger(value, 1, Number.MAX_SAFE_INTEGER), name, "an integer >= 1", value),
  signal: checkSignal,
  onError: checkFunction,
  clock: checkClock,
};
