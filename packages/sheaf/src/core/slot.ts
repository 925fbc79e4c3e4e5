import type { Chunk } from "./chunk.ts";
import type { OrderKey } from "./order.ts";

/**
 * Where an item stands, for the features that must find it again: order and dedupe. Only batchers with an `orderKey` or
 * `dedupeKey` make slots.
 */
export interface Slot<In> {
  chunk: Chunk<In>;
  index: number;
  order: OrderKey<In> | undefined;
  /** Its neighbours among the waiting items of its order key. */
  ahead: Slot<In> | undefined;
  behind: Slot<In> | undefined;
  /** Where the batcher has an `orderKey`: who entered the line earlier has the lower place. */
  place: number;
  dedupeKey: unknown;
  /** Further callers of the same item; a chunk of its own that stands in no line. */
  sharers: Chunk<In> | undefined;
  /** Takes it out of the map of equal items that can be joined. */
  leaveDedupe: ((slot: Slot<In>) => void) | undefined;
}
