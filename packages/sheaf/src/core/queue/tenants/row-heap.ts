import { isBefore, type Row, type RowPlace } from "./row.ts";

/** Rows that come in any order: a binary heap. */
export class RowHeap<In> implements RowPlace<In> {
  first: Row<In> | undefined;
  readonly #rows: Row<In>[] = [];

  add(row: Row<In>): void {
    row.place = this;
    this.#up(row, this.#rows.length);
    this.first = this.#rows[0];
  }

  remove(row: Row<In>): void {
    const { index } = row;
    const last = this.#rows.pop()!;
    row.place = undefined;
    if (last !== row) {
      this.#up(last, index);
      this.#down(last, last.index);
    }
    this.first = this.#rows[0];
  }

  /** Moves a row from `index` towards the first. */
  #up(row: Row<In>, index: number): void {
    const rows = this.#rows;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = rows[parent]!;
      if (!isBefore(row, above)) break;
      rows[index] = above;
      above.index = index;
      index = parent;
    }
    rows[index] = row;
    row.index = index;
  }

  #down(row: Row<In>, index: number): void {
    const rows = this.#rows;
    const { length } = rows;
    for (let child = 2 * index + 1; child < length; child = 2 * index + 1) {
      if (child + 1 < length && isBefore(rows[child + 1]!, rows[child]!)) child++;
      const below = rows[child]!;
      if (!isBefore(below, row)) break;
      rows[index] = below;
      below.index = index;
      index = child;
    }
    rows[index] = row;
    row.index = index;
  }
}
