import type { Chunk, ItemRef } from "./chunk.ts";

/** Items that an equal call can join, by dedupe key. */
export class EqualItems<In> {
  readonly #refs: Map<unknown, ItemRef<In>> = new Map();
  readonly #leave = (ref: ItemRef<In>): void => {
    ref.leaveDedupe = undefined;
    if (this.#refs.get(ref.dedupeKey) === ref) this.#refs.delete(ref.dedupeKey);
  };

  get(key: unknown): ItemRef<In> | undefined {
    return this.#refs.get(key);
  }

  add(ref: ItemRef<In>): void {
    ref.leaveDedupe = this.#leave;
    this.#refs.set(ref.dedupeKey, ref);
  }

  /** Items of a batch that did not run can be joined again, where no equal item has come meanwhile. */
  rejoin({ refs, settlers }: Chunk<In>): void {
    refs?.forEach((ref, index) => {
      if (settlers[index] !== undefined && ref.dedupeKey !== undefined && !this.#refs.has(ref.dedupeKey)) this.add(ref);
    });
  }
}
