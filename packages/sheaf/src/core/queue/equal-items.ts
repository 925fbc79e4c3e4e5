import type { Batch, Entry } from "./entry.ts";

/** Items that an equal call can join, by dedupe key. */
export class EqualItems<In> {
  readonly #entries: Map<unknown, Entry<In>> = new Map();

  get(key: unknown): Entry<In> | undefined {
    return this.#entries.get(key);
  }

  add(entry: Entry<In>): void {
    entry.tie().equal = this;
    this.#entries.set(entry.keys!.dedupeKey, entry);
  }

  leave(entry: Entry<In>): void {
    const { dedupeKey } = entry.keys!;
    entry.ties!.equal = undefined;
    if (this.#entries.get(dedupeKey) === entry) this.#entries.delete(dedupeKey);
  }

  /** Items of a batch that did not run can be joined again, where no equal item has come meanwhile. */
  rejoin({ entries }: Batch<In>): void {
    for (const entry of entries) {
      const key = entry.keys?.dedupeKey;
      if (entry.settler !== undefined && key !== undefined && !this.#entries.has(key)) this.add(entry);
    }
  }
}
