import type { Priority } from "../../../core/contract/options.ts";
import { lanes, type QueueSettings } from "./options.ts";
import { unavailable } from "../wire/errors.ts";
import { jetStream, type ConsumerInfo, type ConsumerList } from "./jetstream.ts";
import { namesOf } from "./topology.ts";

/** One lane of a queue, as the NATS server counts it. */
export interface LaneFigures {
  readonly lane: Priority;
  /** Items that wait for a worker. */
  readonly pending: number;
  /** Items at a worker, not yet answered. */
  readonly ackPending: number;
  /** Of these, items that were delivered more than once. */
  readonly redelivered: number;
  /** Open requests for items: above 0, a worker is idle. */
  readonly waitingPulls: number;
}

/** The figures of every lane; none without JetStream. @throws {NatsQueueError} `UNAVAILABLE` */
export async function laneFigures(settings: QueueSettings): Promise<LaneFigures[]> {
  return settings.durability === "none" ? [] : figuresOf(await consumersOf(settings));
}

/** Of every version: an old one finishes its items. @throws {NatsQueueError} `UNAVAILABLE` */
export async function consumersOf(settings: QueueSettings): Promise<readonly ConsumerInfo[]> {
  const { stream } = namesOf(settings);
  const { consumers = [], missing, error } = await jetStream<ConsumerList>(settings, `CONSUMER.LIST.${stream}`);
  if (error === undefined && (missing?.length ?? 0) === 0) return consumers;
  const reason = error?.description ?? "a part has no leader";
  throw unavailable(`JetStream cannot count the items of ${stream}: ${reason}.`);
}

export function figuresOf(consumers: readonly ConsumerInfo[]): LaneFigures[] {
  return lanes.map((lane) => {
    const own = consumers.filter(({ name }) => name?.endsWith(`-${lane}`));
    const sum = (of: "num_pending" | "num_ack_pending" | "num_redelivered" | "num_waiting"): number =>
      own.reduce((total, { [of]: count = 0 }) => total + count, 0);
    return {
      lane,
      pending: sum("num_pending"),
      ackPending: sum("num_ack_pending"),
      // The server goes on counting items that were deleted, such as dead letters.
      redelivered: Math.min(sum("num_redelivered"), sum("num_ack_pending")),
      waitingPulls: sum("num_waiting"),
    };
  });
}
