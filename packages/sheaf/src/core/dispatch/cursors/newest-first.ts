import type { Chunk, ItemRef } from "../../queue/chunks/chunk.ts";
import { Cursor, type Entry } from "./cursor.ts";

/** Walks a lane queue from the newest entry to the oldest, after the entries that keep their place. */
export class NewestFirst<In> extends Cursor<In> {
  /** From the oldest on. */
  #keeping: Entry<In>[] | undefined;

  override atEnd(): boolean {
    return this.#keeping === undefined && super.atEnd();
  }

  override arrivedAtMs(): number {
    const keeping = this.#keeping?.[0];
    return keeping === undefined ? super.arrivedAtMs() : keeping.chunk.arrivedAtMs(keeping.index);
  }

  override oldestAtMs(): number {
    return this.laneQueue.oldestAtMs();
  }

  override take(): Entry<In> {
    const next = this.#keeping?.shift() ?? super.take();
    if (this.#keeping?.length === 0) this.#keeping = undefined;
    return next;
  }

  override begin(limit: number): void {
    const { head, tail, blocked, keeping } = this.laneQueue;
    this.chunk = tail;
    this.index = tail?.count ?? 0;
    this.advance();
    if (blocked !== undefined) this.back = blocked.ready.slice(-limit - 1).reverse();
    if (keeping > 0) this.#findKeeping(head, limit);
  }

  protected override isBefore(place: number, other: number): boolean {
    return place > other;
  }

  protected override placeOf(sorted: readonly ItemRef<In>[], { place }: ItemRef<In>): number {
    const at = sorted.findIndex((ref) => ref.place < place);
    return at === -1 ? sorted.length : at;
  }

  protected override advance(): void {
    this.index--;
    while (this.chunk !== undefined) {
      const { settlers, keepsPlace } = this.chunk;
      while (this.index >= 0 && (settlers[this.index] === undefined || keepsPlace?.[this.index] === true)) this.index--;
      if (this.index >= 0) return;
      this.chunk = this.chunk.previous;
      this.index = (this.chunk?.count ?? 0) - 1;
    }
  }

  #findKeeping(head: Chunk<In> | undefined, limit: number): void {
    const found: Entry<In>[] = [];
    for (let chunk = head; chunk !== undefined && found.length <= limit; chunk = chunk.next) {
      if (chunk.keepsPlace === undefined) continue;
      for (let index = chunk.head; index < chunk.count; index++)
        if (chunk.keepsPlace[index] === true && chunk.settlers[index] !== undefined) found.push({ chunk, index });
    }
    if (found.length > 0) this.#keeping = found;
  }
}
