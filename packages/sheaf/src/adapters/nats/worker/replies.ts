import { abridged, describeError } from "../../../core/contract/wire-error.ts";
import type { DetailedResult } from "../../../core/contract/batcher.ts";
import type { BatchRecord, DispatchReason } from "../../../policies/policy.ts";
import type { Delivery } from "./delivery.ts";
import { replySubject, type ReplyHead } from "../wire/envelope.ts";
import { pack } from "../../../shared/packed.ts";
import type { QueueConnection } from "../wire/connection.ts";
import { largestMessageBytes, type QueueSettings } from "../queue/options.ts";

/** Of batches, stored until their items are answered, which is in the same turn. */
const reasonsKept = 64;
const nothing = new Uint8Array();

/** Answers front ends. A reply that cannot be sent now is sent when the connection is back. */
export class Replies {
  readonly #settings: QueueSettings;
  readonly #link: QueueConnection;
  readonly #workerId: string;
  readonly #reasons: Map<number, DispatchReason> = new Map();
  /** At most the items that were at this worker when the connection broke. */
  readonly #unsent: (() => void)[] = [];

  constructor(settings: QueueSettings, link: QueueConnection, workerId: string) {
    this.#settings = settings;
    this.#link = link;
    this.#workerId = workerId;
  }

  /** A batch has its outcome; its items are about to be answered. */
  observe({ batchId, reason }: BatchRecord): void {
    this.#reasons.set(batchId, reason);
    if (this.#reasons.size > reasonsKept) this.#reasons.delete(this.#reasons.keys().next().value!);
  }

  result(delivery: Delivery, { value, batchId, batchSize, runMs }: DetailedResult<unknown>): void {
    let body: Uint8Array;
    try {
      body = this.#settings.codec.encode(value);
    } catch (error) {
      return this.error(delivery, error);
    }
    const reason = this.#reasons.get(batchId);
    const head: ReplyHead = {
      n: batchSize,
      b: batchId,
      w: this.#workerId,
      m: runMs,
      s: reason ?? "idle",
      c: delivery.deliveries,
      a: delivery.ack,
      p: reason === undefined ? true : undefined,
    };
    const payload = pack(head, body);
    const most = largestMessageBytes(this.#settings);
    if (payload.byteLength > most) {
      const message = `The result takes ${payload.byteLength} bytes, the NATS server at most ${most} (max_payload).`;
      return this.error(delivery, new Error(message));
    }
    this.#send(delivery, payload);
  }

  /** An error that is too large to send whole goes as its name and the start of its message. */
  error(delivery: Delivery, error: unknown): void {
    const { deliveries, ack } = delivery;
    const head: ReplyHead = { n: 1, b: 0, w: "", m: 0, s: "idle", c: deliveries, a: ack };
    const described = describeError(error);
    const whole = pack({ ...head, e: described }, nothing);
    const isTooLarge = whole.byteLength > largestMessageBytes(this.#settings);
    this.#send(delivery, isTooLarge ? pack({ ...head, e: abridged(described) }, nothing) : whole);
  }

  /** The connection is back. */
  sendUnsent(): void {
    for (const send of this.#unsent.splice(0)) send();
  }

  /**
   * The front end itself acknowledges to the queue: until it has the result the item stays there, so a
   * lost reply costs a repetition but no answer.
   */
  #send(delivery: Delivery, payload: Uint8Array): void {
    if (this.#link.publish(replySubject(delivery.head), payload)) return;
    this.#unsent.push(() => this.#send(delivery, payload));
  }
}
