import { ChunkList } from "./chunks/chunk-list.ts";
import type { BlockedList, ItemRef } from "./chunks/chunk.ts";
import type { Tenants } from "./tenants/tenants.ts";

/**
 * The calls of a lane queue that their order key blocks, kept apart so that no scan passes over them: 10,000 items
 * behind one that runs cost the others nothing. Their chunks have no order; the key knows which call is next.
 */
export class BlockedCalls<In> extends ChunkList<In> implements BlockedList<In> {
  /** By place: the calls that are no longer blocked, each the first of a key that no batch holds. */
  readonly ready: ItemRef<In>[] = [];
  readonly #tenants: Tenants<In> | undefined;

  constructor(tenants: Tenants<In> | undefined) {
    super();
    this.#tenants = tenants;
  }

  /** The first of its key, and the key is free. */
  offer(ref: ItemRef<In>): void {
    this.ready.splice(placeOf(this.ready, ref), 0, ref);
    this.#tenants?.offered(ref.chunk, ref.index);
  }

  /** The item is about to leave; it need not have been offered. */
  withdraw(ref: ItemRef<In>): void {
    const at = placeOf(this.ready, ref);
    if (this.ready[at] === ref) this.ready.splice(at, 1);
  }
}

/** The index of the item, or where it would go, among items sorted by place. */
export function placeOf<In>(sorted: readonly ItemRef<In>[], { place }: ItemRef<In>): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.place < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
