import type { BatcherPending } from "../../../core/contract/batcher.ts";
import { BatcherError } from "../../../core/contract/errors.ts";
import { MessageAges } from "./message-ages.ts";
import type { NatsMessage } from "../wire/client.ts";
import { deliveryOf, AckKind, type AckToken, type Delivery } from "./delivery.ts";
import { requestOf, type Request } from "../wire/envelope.ts";
import type { InFlight } from "./in-flight.ts";
import type { FlowControl } from "./flow-control.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Replies } from "./replies.ts";
import type { ItemRuns } from "./runs.ts";
import type { Redeliveries } from "./redeliveries.ts";
import { SeenFrontEnds } from "./others/seen-front-ends.ts";

export interface ArrivalParts {
  readonly settings: QueueSettings;
  readonly link: QueueConnection;
  readonly pending: () => BatcherPending;
  readonly inFlight: InFlight;
  readonly redeliveries: Redeliveries;
  readonly flowControl: FlowControl;
  readonly runs: ItemRuns;
  readonly replies: Replies;
  /** False while this worker cannot run anything. */
  readonly isTaking: () => boolean;
}

/** Messages that arrive at a worker: the kind of each, and its way. */
export class Arrivals {
  readonly counts: { delivered: number; redelivered: number } = { delivered: 0, redelivered: 0 };
  readonly frontEnds: SeenFrontEnds = new SeenFrontEnds();
  readonly #parts: ArrivalParts;
  readonly #ages: MessageAges;

  constructor(parts: ArrivalParts) {
    this.#parts = parts;
    this.#ages = new MessageAges(parts.settings.maxAgeMs);
  }

  /** JetStream: requested, acknowledged, and given to another worker if this one falls silent. */
  fromQueue(message: NatsMessage, { lane, deliveries, sequence, storedAtMs, pending }: AckToken): void {
    const { settings, link, inFlight, redeliveries, flowControl, runs, isTaking } = this.#parts;
    flowControl.sawBacklog(lane, pending);
    const ack = message.reply!;
    const request = this.#read(message);
    // Not a message of ours: no one waits for it, and it would come back forever.
    if (request === undefined) return void link.publish(ack, AckKind.end);
    const nowMs = settings.clock.now();
    const ageMs = this.#ages.ageMs(storedAtMs, nowMs);
    this.frontEnds.saw(request.head.f, nowMs);
    const delivery = deliveryOf(request, nowMs, ageMs, { lane, sequence, deliveries, ack });
    this.counts.delivered++;
    const known = inFlight.get(delivery.key);
    if (known !== undefined) {
      // It is still being worked on here: the progress report to the queue was late.
      known.ack = ack;
      known.deliveries = deliveries;
      return;
    }
    if (inFlight.wasCancelled(delivery.key)) return runs.drop(delivery);
    if (!isTaking()) return runs.handBack(delivery);
    inFlight.add(delivery);
    if (deliveries > 1) {
      this.counts.redelivered++;
      redeliveries.add(delivery);
    } else if (link.hasHungLately) {
      // Its caller may have been refused long ago, and the cancellation still be behind it.
      redeliveries.add(delivery);
    } else {
      flowControl.add(delivery);
    }
  }

  /** Core NATS: a worker gets pushed items, and refuses those for which it has no room. */
  pushed(message: NatsMessage, lane: Delivery["lane"]): void {
    const { settings, pending, inFlight, runs, replies } = this.#parts;
    const request = this.#read(message);
    if (request === undefined) return;
    const nowMs = settings.clock.now();
    this.frontEnds.saw(request.head.f, nowMs);
    const delivery = deliveryOf(request, nowMs, 0, { lane, sequence: "", deliveries: 1, ack: undefined });
    this.counts.delivered++;
    const { maxQueueSize } = settings;
    const { queued, bulk } = pending();
    if ((lane === "bulk" ? bulk : queued - bulk) >= maxQueueSize) {
      const reason = `The worker's queue is full: ${maxQueueSize} items of the lane wait (maxQueueSize).`;
      return replies.error(delivery, new BatcherError("QUEUE_FULL", reason, { maxQueueSize }));
    }
    inFlight.add(delivery);
    void runs.run(delivery, "shared");
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
