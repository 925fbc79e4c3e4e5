import type { CallOptions, Priority } from "../../../core/contract/options.ts";
import { BatcherError } from "../../../core/contract/errors.ts";
import type { Epoch } from "../../../core/queue/epoch.ts";
import type { NatsDetailedResult } from "../wire/detailed-result.ts";
import { type RequestHead } from "../wire/envelope.ts";
import { pack } from "../../../shared/packed.ts";
import { NatsQueueError } from "../wire/errors.ts";
import { largestMessageBytes, type QueueSettings } from "../queue/options.ts";

export type StartOptions = CallOptions & { readonly timeoutMs: number };

/** One call, from its publish to its result. */
export interface Call {
  readonly head: RequestHead;
  readonly payload: Uint8Array;
  readonly lane: Priority;
  /** Of the version that it was sent to. */
  route: string;
  readonly arrivedAtMs: number;
  /** How long it waited for its tenant's turn before. */
  readonly turnMs: number;
  readonly epoch: Epoch;
  resolve(result: NatsDetailedResult<unknown>): void;
  reject(error: unknown): void;
  /** Resolves its admission: with the refusal, or with nothing. Undefined once the queue has it. */
  admitted: ((refusal?: Error) => void) | undefined;
  publishedAtMs: number;
  publishes: number;
  /** Its number in the stream, once the queue has it. */
  sequence: number | undefined;
  /** Where the queue has it, while it is being moved to another version. */
  movedFrom: { readonly route: string; readonly sequence: number } | undefined;
  /** Workers that ran it, and nothing beside it, and have not been seen to end. */
  aloneAt: Set<string> | undefined;
  /** Workers that ended meanwhile. */
  deathsAlone: number;
  /** So many deliveries, the first ones, ended with a worker that handed it back: none of them ended a worker. */
  handedBack: number;
  release(): void;
}

/** @throws {BatcherError} `ITEM_TOO_LARGE` */
export function payloadOf(head: RequestHead, item: unknown, settings: QueueSettings, name: string): Uint8Array {
  const payload = pack(head, settings.codec.encode(item));
  const bytes = payload.byteLength;
  const most = largestMessageBytes(settings);
  if (bytes <= most) return payload;
  const message = `${name}: the item takes ${bytes} bytes, the NATS server at most ${most} (its max_payload less headers).`;
  throw new BatcherError("ITEM_TOO_LARGE", message, { bytes, most });
}

export interface StartedCall {
  readonly result: Promise<NatsDetailedResult<unknown>>;
  /** Resolves when the queue has taken it, with nothing, or refused it, with the reason. */
  readonly admission: Promise<Error | undefined>;
  /** Ends the call with `reason`, unless it has ended. */
  withdraw(reason: unknown): void;
}

export const unreadable = (name: string): NatsQueueError =>
  new NatsQueueError("UNAVAILABLE", `${name}: a worker's reply cannot be read. Do all of the fleet run one version?`);

export const timedOut = (name: string, timeoutMs: number): BatcherError =>
  new BatcherError(
    "TIMEOUT",
    `${name}: no result within ${timeoutMs} ms (timeoutMs). Raise timeoutMs, or add workers.`,
    { timeoutMs, waiting: true },
  );
