import type { Priority } from "../../../core/options.ts";
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
  /** Where the queue hears what became of it; undefined without JetStream. A redelivery brings a new one. */
  ack: string | undefined;
  /** When the queue last heard that somebody works on it. */
  signalledAtMs: number;
  /** Worker's clock. */
  deadlineAtMs: number;
  readonly abort: AbortController;
  isCancelled: boolean;
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
    abort: new AbortController(),
    isCancelled: false,
  };
}

/** What the ack subject of a delivery says: `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<n>.<time>.<pending>`. */
export interface AckToken {
  readonly lane: Priority;
  readonly deliveries: number;
  readonly sequence: string;
  /** Server's clock, in milliseconds since 1970. */
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

/** What a worker says of a delivery. */
export const AckKind = {
  /** Give it to somebody, at once. */
  again: "-NAK",
  againAfter: (ms: number): string => `-NAK {"delay": ${Math.round(ms * 1_000_000)}}`,
  /** Never give it to anybody again. */
  end: "+TERM",
  working: "+WPI",
} as const;
