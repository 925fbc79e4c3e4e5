import { RowHeap } from "./row-heap.ts";
import { RowLine } from "./row-line.ts";
import { isBefore, type Row, type RowTurns } from "./row.ts";

/**
 * The rows of a lane of a group, the one whose tenant goes next first. An account grows in other lanes too, so a row learns of
 * it when it comes to the top.
 *
 * Tenants that come, and those that come back from their turn, are each nearly in order: two lines hold most of them, and only
 * the others cost the steps of a heap.
 */
export class Turns<In> implements RowTurns<In> {
  /** Counts the choices: each reads the rows from their start or their end. */
  choice = 0;
  readonly #line: RowLine<In> = new RowLine();
  readonly #secondLine: RowLine<In> = new RowLine();
  readonly #others: RowHeap<In> = new RowHeap();
  /** Rows that a choice has moved or taken out. */
  #touched: Row<In>[] | undefined;

  /** The row whose tenant goes next. */
  top(): Row<In> | undefined {
    for (;;) {
      let row = this.#line.first;
      const second = this.#secondLine.first;
      if (second !== undefined && (row === undefined || isBefore(second, row))) row = second;
      const other = this.#others.first;
      if (other !== undefined && (row === undefined || isBefore(other, row))) row = other;
      // Each change of an account comes with another turn.
      if (row === undefined || row.turn === row.tenant.turn) return row;
      this.#touched?.push(row);
      row.place!.remove(row);
      this.add(row);
    }
  }

  add(row: Row<In>): void {
    row.account = row.tenant.account;
    row.turn = row.tenant.turn;
    if (this.#line.takes(row)) this.#line.add(row);
    else if (this.#secondLine.takes(row)) this.#secondLine.add(row);
    else this.#others.add(row);
  }

  /** A choice begins, which changes accounts and order only until `end`. */
  begin(): void {
    this.choice++;
    this.#touched = [];
  }

  /** The choice has read the whole row. */
  exhausted(row: Row<In>): void {
    this.#touched!.push(row);
    row.place!.remove(row);
  }

  end(): void {
    const touched = this.#touched!;
    this.#touched = undefined;
    for (const row of touched) {
      row.place?.remove(row);
      if (row.first !== undefined) this.add(row);
    }
  }
}
