import { describeError } from "../../../core/contract/wire-error.ts";
import { NatsQueueError } from "../wire/errors.ts";
import { keyOf, replySubject, requestOf, type RequestHead } from "../wire/envelope.ts";
import { pack, recordOf } from "../../../shared/packed.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "./options.ts";
import { jetStream } from "./jetstream.ts";
import type { QueueNames } from "./topology.ts";

const longestReason = 500;
/** Most bytes of a dead letter's headers, without its reason and the stream's name. */
const otherHeadersBytes = 150;

/** The stored form of a dead-lettered item. */
export interface DeadItem {
  readonly head: RequestHead;
  readonly body: Uint8Array;
  /** Its number in the stream. */
  readonly sequence: string;
  readonly deliveries: number;
  readonly reason: string;
}

interface StoredMessage {
  readonly message?: { readonly data?: string };
}

/** Dead-letters items: a copy for later inspection, and an error for the caller. */
export class DeadLetters {
  count = 0;
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;

  constructor(settings: QueueSettings, names: QueueNames, link: QueueConnection) {
    this.#settings = settings;
    this.#names = names;
    this.#link = link;
  }

  /**
   * Takes messages past `maxDeliver` out of the queue, where they would stay and take up room. One of all front ends
   * and workers of the queue is notified of each.
   */
  watch(): void {
    this.#link.subscribe(
      this.#names.maxDeliveries,
      ({ data }) => {
        const { stream_seq, deliveries } = recordOf(data);
        if (!Number.isSafeInteger(stream_seq) || !Number.isSafeInteger(deliveries))
          throw new TypeError("It is not an advisory.");
        const reason = "no worker finished it: each one that took it ended or was cut off";
        void this.takeOut(stream_seq as number, deliveries as number, reason).catch(() => undefined);
      },
      { queue: "sheaf", need: "optional" },
    );
  }

  /** Publishes the copy and replies to the front end. The code that calls this acknowledges the message. */
  write({ head, body, sequence, deliveries, reason }: DeadItem): void {
    this.count++;
    const headers = this.#settings.headers();
    headers.set("Nats-Msg-Id", `dlq-${this.#names.stream}-${sequence}`);
    headers.set("Sheaf-Sequence", sequence);
    headers.set("Sheaf-Deliveries", String(deliveries));
    // The item was as large as a message may be: the place of its head is all the room there is.
    const most = this.#settings.connection.info?.max_payload ?? Infinity;
    const taken = body.byteLength + otherHeadersBytes + this.#names.stream.length;
    const room = Math.max(0, Math.min(longestReason, most - taken));
    headers.set("Sheaf-Reason", reason.replaceAll(/[^\u0020-\u007e]/g, "?").slice(0, room));
    this.#link.publish(this.#names.deadLetters, body, { headers });
    const error = new NatsQueueError(
      "DEAD_LETTERED",
      `The item was given up after ${deliveries} deliveries and is in the dead letters as ${sequence}: ${reason}`,
      sequence,
    );
    const reply = { n: 1, b: 0, w: "", m: 0, s: "idle", c: deliveries, e: describeError(error) };
    this.#link.publish(replySubject(head), pack(reply, new Uint8Array()));
  }

  /** Writes an item that is still in the queue, and takes it out of there. */
  async takeOut(sequence: number, deliveries: number, why: string): Promise<void> {
    const { stream } = this.#names;
    const { message } = await jetStream<StoredMessage>(this.#settings, `STREAM.MSG.GET.${stream}`, { seq: sequence });
    if (message?.data === undefined) return;
    const { head, body } = requestOf(Uint8Array.from(atob(message.data), (char) => char.charCodeAt(0)));
    const reason = `${why} (${keyOf(head)})`;
    this.write({ head, body, sequence: String(sequence), deliveries, reason });
    await jetStream(this.#settings, `STREAM.MSG.DELETE.${stream}`, { seq: sequence, no_erase: true });
  }
}

declare function atob(base64: string): string;
