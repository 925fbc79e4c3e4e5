import type { ItemRef } from "../../queue/chunks/chunk.ts";
import { Cursor } from "./cursor.ts";

/** Walks a lane queue from the newest entry to the oldest. */
export class NewestFirst<In> extends Cursor<In> {
  override oldestAtMs(): number {
    return this.laneQueue.oldestAtMs();
  }

  override begin(limit: number): void {
    const { tail, blocked } = this.laneQueue;
    this.chunk = tail;
    this.index = tail?.count ?? 0;
    this.advance();
    if (blocked !== undefined) this.back = blocked.ready.slice(-limit - 1).reverse();
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
      while (this.index >= 0 && this.chunk.settlers[this.index] === undefined) this.index--;
      if (this.index >= 0) return;
      this.chunk = this.chunk.previous;
      this.index = (this.chunk?.count ?? 0) - 1;
    }
  }
}
