import { ChunkRow } from "./chunk-list.ts";
import type { RowAside, Slot } from "./chunk.ts";

/**
 * The calls of a line that their order key blocks, kept out of it so that nobody walks over them: 10,000 items behind
 * one that runs cost the others nothing. Their chunks stand in no order; who is next is known to the key.
 */
export class Aside<In> extends ChunkRow<In> implements RowAside<In> {
  /** By place: the calls that may go again, each the first of a key that no batch holds. */
  readonly ready: Slot<In>[] = [];

  /** The first of its key, and nobody holds the key any more. */
  offer(slot: Slot<In>): void {
    this.ready.splice(placeOf(this.ready, slot), 0, slot);
  }

  /** The slot is about to leave; it need not have been offered. */
  withdraw(slot: Slot<In>): void {
    const at = placeOf(this.ready, slot);
    if (this.ready[at] === slot) this.ready.splice(at, 1);
  }
}

/** Where the slot stands, or would stand, among slots sorted by place. */
export function placeOf<In>(sorted: readonly Slot<In>[], { place }: Slot<In>): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.place < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
