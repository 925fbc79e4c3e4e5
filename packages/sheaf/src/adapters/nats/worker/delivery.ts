import type { Priority } from "../../../core/contract/options.ts";
import type { AbortSignalLike } from "../../../core/runtime/signals.ts";
import { keyOf, type Request, type RequestHead } from "../wire/envelope.ts";
import { lanes } from "../queue/options.ts";

/** An item at a worker. */
export interface Delivery {
  readonly key: string;
  readonly head: RequestHead;
  readonly body: Uint8Array;
  readonly lane: Priority;
  /** Number in the stream; empty without JetStream. */
  readonly sequence: string;
  /** 1, or more after a fault. */
  deliveries: number;
  /** The subject of its acknowledgement; undefined without JetStream. A redelivery has a new one. */
  ack: string | undefined;
  /** When the queue was last told that it is in progress. */
  signalledAtMs: number;
  /** By the worker's clock. */
  deadlineAtMs: number;
  readonly departure: Departure;
  isCancelled: boolean;
}

/**
 * Whether the caller of an item has left: as much of an AbortSignal as batchers look at. Each item needs one, and a real one
 * is a tenth of what it costs its worker.
 */
export class Departure implements AbortSignalLike {
  aborted = false;
  reason: unknown;
  readonly #listeners: Set<() => void> = new Set();

  /** The caller has left, or the worker does. */
  leave(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners) listener();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

/** `ageMs`: how long it has waited already; its deadline counts from when the front end sent it. */
export function deliveryOf(
  { head, body }: Request,
  nowMs: number,
  ageMs: number,
  given: Pick<Delivery, "lane" | "sequence" | "deliveries" | "ack">,
): Delivery {
  return {
    key: keyOf(head),
    head,
    body,
    ...given,
    signalledAtMs: nowMs,
    deadlineAtMs: nowMs + head.d - ageMs,
    departure: new Departure(),
    isCancelled: false,
  };
}

/**
 * The parts of the ack subject of a delivery:
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<n>.<time>.<pending>`.
 */
export interface AckToken {
  readonly lane: Priority;
  readonly deliveries: number;
  readonly sequence: string;
  /** By the server's clock, in milliseconds since 1970. */
  readonly storedAtMs: number;
  /** Items of the lane that wait behind it. */
  readonly pending: number;
}

const newestTokens = 11;

export function ackTokenOf(reply: string): AckToken {
  const tokens = reply.split(".");
  // Newer servers may put a domain and an account before the stream.
  const [, consumer, deliveries, sequence, , storedAtNs, pending] = tokens.slice(tokens.length >= newestTokens ? 4 : 2);
  return {
    lane: lanes.find((lane) => consumer?.endsWith(`-${lane}`)) ?? "interactive",
    deliveries: Number(deliveries),
    sequence: sequence ?? "",
    storedAtMs: Number(storedAtNs) / 1_000_000,
    pending: Number(pending),
  };
}

/** Kinds of acknowledgement of a delivery. */
export const AckKind = {
  /** Deliver it again, at once. */
  again: "-NAK",
  againAfter: (ms: number): string => `-NAK {"delay": ${Math.round(ms * 1_000_000)}}`,
  /** Never deliver it again. */
  end: "+TERM",
  working: "+WPI",
} as const;
