import type { Priority } from "../../../core/options.ts";
import { lanes, type QueueSettings } from "./options.ts";
import { jetStream, namesOf } from "./topology.ts";

/** One lane of a queue, as the NATS server counts it. */
export interface LaneFigures {
  readonly lane: Priority;
  /** Items that wait for a worker. */
  readonly pending: number;
  /** Items at a worker, not yet answered. */
  readonly ackPending: number;
  /** Of these, items that were delivered more than once. */
  readonly redelivered: number;
  /** Workers' open requests for items: above 0, somebody is idle. */
  readonly waitingPulls: number;
}

interface ConsumerInfo {
  readonly num_pending?: number;
  readonly num_ack_pending?: number;
  readonly num_redelivered?: number;
  readonly num_waiting?: number;
}

/** The figures of every lane; none without JetStream. @throws {NatsQueueError} `UNAVAILABLE` */
export async function laneFigures(settings: QueueSettings): Promise<LaneFigures[]> {
  if (settings.durability === "none") return [];
  const { stream, consumer } = namesOf(settings);
  return Promise.all(
    lanes.map(async (lane) => {
      const info = await jetStream<ConsumerInfo>(settings, `CONSUMER.INFO.${stream}.${consumer(lane)}`);
      const { num_pending = 0, num_ack_pending = 0, num_redelivered = 0, num_waiting = 0 } = info;
      return {
        lane,
        pending: num_pending,
        ackPending: num_ack_pending,
        redelivered: num_redelivered,
        waitingPulls: num_waiting,
      };
    }),
  );
}
