import type { Clock } from "../runtime/clock.ts";

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
export const consumeDefaults = { leaseMs: 30_000 } as const;
