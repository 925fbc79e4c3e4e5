import { isBefore, type Row, type RowPlace } from "./row.ts";

/** Rows that come in order: each to the end. */
export class RowLine<In> implements RowPlace<In> {
  first: Row<In> | undefined;
  #last: Row<In> | undefined;

  /** Whether the row goes after all that stand here. */
  takes(row: Row<In>): boolean {
    return this.#last === undefined || isBefore(this.#last, row);
  }

  add(row: Row<In>): void {
    row.place = this;
    row.previous = this.#last;
    if (this.#last === undefined) this.first = row;
    else this.#last.next = row;
    this.#last = row;
  }

  remove(row: Row<In>): void {
    const { previous, next } = row;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    row.place = row.previous = row.next = undefined;
  }
}
