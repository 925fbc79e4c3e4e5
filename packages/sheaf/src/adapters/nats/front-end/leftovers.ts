import type { QueueSettings } from "../queue/options.ts";
import { jetStream, namesOf } from "../queue/topology.ts";

/** The next look is after twice the time, and so on: the server has much to do after an outage. */
const firstLookMs = 1000;

interface StreamInfo {
  readonly state?: { readonly first_seq: number; readonly last_seq: number };
}

interface ConsumerList {
  readonly consumers?: readonly {
    readonly config: { readonly filter_subject?: string };
    readonly ack_floor: { readonly stream_seq: number };
  }[];
}

/** By the subject of a lane: the number up to which nothing is given out again. */
type Floors = ReadonlyMap<string, number>;

/**
 * A NATS server that was killed may have forgotten that an item had left the queue, though its consumer knows that it was
 * acknowledged: nobody gets the item again, and it holds a place until it is too old. After an outage such items are purged, until
 * all items from before it have left.
 */
export class Leftovers {
  readonly #settings: QueueSettings;
  #cancelLook: (() => void) | undefined;
  #endsAtMs = 0;
  #waitMs = firstLookMs;
  /** The last item from before the outage. */
  #lastSequence: number | undefined;
  /** Of the look before: an item that was given out too often needs a moment to become a dead letter. */
  #floors: Floors = new Map();

  constructor(settings: QueueSettings) {
    this.#settings = settings;
  }

  /** The queue was away and is there again. */
  begin(): void {
    const { durability, clock, maxAgeMs } = this.#settings;
    if (durability === "none") return;
    this.#endsAtMs = clock.now() + maxAgeMs;
    this.#waitMs = firstLookMs;
    this.#lastSequence = undefined;
    this.#floors = new Map();
    this.#lookSoon();
  }

  stop(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  #lookSoon(): void {
    const { clock } = this.#settings;
    this.#cancelLook?.();
    this.#cancelLook = clock.after(this.#waitMs, () => {
      this.#waitMs *= 2;
      const cancel = this.#cancelLook;
      void this.#look()
        .catch(() => false)
        .then((isDone) => {
          // It has started again after another outage, or was stopped.
          if (cancel === this.#cancelLook && !isDone && clock.now() < this.#endsAtMs) this.#lookSoon();
        });
    });
  }

  /** True once no item from before the outage is left. */
  async #look(): Promise<boolean> {
    const settings = this.#settings;
    const { stream } = namesOf(settings);
    const { state } = await jetStream<StreamInfo>(settings, `STREAM.INFO.${stream}`);
    if (state === undefined) return false;
    this.#lastSequence ??= state.last_seq;
    if (state.first_seq > this.#lastSequence) return true;
    const { consumers = [] } = await jetStream<ConsumerList>(settings, `CONSUMER.LIST.${stream}`);
    const floors = this.#floors;
    this.#floors = new Map(
      consumers.map(({ config, ack_floor }) => [config.filter_subject ?? "", ack_floor.stream_seq]),
    );
    for (const [filter, floor] of floors)
      // Up to the number before `seq`; a purge up to 0 would take all.
      if (floor > 0) await jetStream(settings, `STREAM.PURGE.${stream}`, { filter, seq: floor + 1 });
    return false;
  }
}
