import type { BatcherLoad } from "../../../core/batcher.ts";
import { BatcherError } from "../../../core/errors.ts";
import { Ages } from "./message-ages.ts";
import type { Caution } from "./poison-mode.ts";
import type { NatsMessage } from "../wire/client.ts";
import { deliveryOf, Verdict, type AckToken, type Delivery } from "./delivery.ts";
import { fingerprintOf, requestOf, type Request } from "../wire/envelope.ts";
import type { Hand } from "./in-flight.ts";
import type { Intake } from "./flow-control.ts";
import type { Link } from "../wire/connection.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Replies } from "./replies.ts";
import type { Runs } from "./runs.ts";
import type { Suspects } from "./redeliveries.ts";

export interface ArrivalParts {
  readonly settings: QueueSettings;
  readonly link: Link;
  readonly load: () => BatcherLoad;
  readonly hand: Hand;
  readonly caution: Caution;
  readonly suspects: Suspects;
  readonly intake: Intake;
  readonly runs: Runs;
  readonly replies: Replies;
  /** False while nothing can run here. */
  readonly isTaking: () => boolean;
}

/** Messages that come to a worker: what each is, and where it goes. */
export class Arrivals {
  readonly counts: { delivered: number; redelivered: number } = { delivered: 0, redelivered: 0 };
  readonly #parts: ArrivalParts;
  readonly #ages: Ages;
  /** Of what is served here. */
  readonly #fingerprint: string | undefined;

  constructor(parts: ArrivalParts) {
    this.#parts = parts;
    const { serves, maxAgeMs } = parts.settings;
    this.#ages = new Ages(maxAgeMs);
    this.#fingerprint = serves === undefined ? undefined : fingerprintOf(serves);
  }

  /** JetStream: asked for, acknowledged, and given to somebody else where nothing is heard of it. */
  fromQueue(message: NatsMessage, { lane, deliveries, sequence, storedAtMs, pending }: AckToken): void {
    const { settings, link, hand, caution, suspects, intake, runs, isTaking } = this.#parts;
    intake.sawBacklog(pending);
    const ack = message.reply!;
    const request = this.#read(message);
    // Somebody else's message: nobody waits for it, and it would come back for ever.
    if (request === undefined) return void link.publish(ack, Verdict.end);
    const nowMs = settings.clock.now();
    const ageMs = this.#ages.ageMs(storedAtMs, nowMs);
    const delivery = deliveryOf(request, nowMs, ageMs, { lane, sequence, deliveries, ack });
    this.counts.delivered++;
    const known = hand.get(delivery.key);
    if (known !== undefined) {
      // It is still being worked on here: the queue had not heard of it in time.
      known.ack = ack;
      known.deliveries = deliveries;
      return;
    }
    if (hand.wasCancelled(delivery.key)) return runs.drop(delivery);
    if (!isTaking()) return runs.handBack(delivery);
    if (this.#isForAnother(request)) return runs.refuse(delivery);
    hand.add(delivery);
    if (deliveries > 1) {
      this.counts.redelivered++;
      caution.suspectSeen();
      suspects.add(delivery);
    } else {
      intake.add(delivery);
    }
  }

  /** Core NATS: a worker gets what is pushed to it, and refuses what it has no room for. */
  pushed(message: NatsMessage, lane: Delivery["lane"]): void {
    const { settings, load, hand, runs, replies } = this.#parts;
    const request = this.#read(message);
    if (request === undefined) return;
    const nowMs = settings.clock.now();
    const delivery = deliveryOf(request, nowMs, 0, { lane, sequence: "", deliveries: 1, ack: undefined });
    this.counts.delivered++;
    if (this.#isForAnother(request)) return runs.refuse(delivery);
    const { maxQueueSize } = settings;
    if (load().queued >= maxQueueSize) {
      const reason = `The worker's queue is full: ${maxQueueSize} items wait (maxQueueSize).`;
      return replies.error(delivery, new BatcherError("QUEUE_FULL", reason, { maxQueueSize }));
    }
    hand.add(delivery);
    void runs.run(delivery, "shared");
  }

  #isForAnother({ head: { s } }: Request): boolean {
    return s !== undefined && this.#fingerprint !== undefined && s !== this.#fingerprint;
  }

  #read({ data, subject }: NatsMessage): Request | undefined {
    try {
      return requestOf(data);
    } catch (thrown) {
      this.#parts.link.reportUnreadable(subject, thrown);
      return undefined;
    }
  }
}
