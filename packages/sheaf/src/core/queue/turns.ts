import { LinkedList, type Entry } from "./entry.ts";
import type { Account } from "./tenants.ts";

/** A tenant's claim on a waiting item, which it goes with when the turn is the tenant's. Only with a `fairKey`. */
export interface Claim<In> {
  readonly tenant: Account<In>;
  readonly entry: Entry<In>;
  /** An item that entered the lane earlier has the lower place. */
  place: number;
  /** Callers of the tenant who share the item; 0 once it no longer waits. */
  callers: number;
  /** The row of the tenant in which it stands; undefined while its order key blocks it. */
  row: Row<In> | undefined;
  previous: Claim<In> | undefined;
  next: Claim<In> | undefined;
  /** All claims on the item, where tenants share it. */
  all: Claim<In>[] | undefined;
}

/**
 * The rows of a lane of a group, the one whose tenant goes next first. An account grows in other lanes too, so a row learns of
 * it when it comes to the top.
 *
 * Tenants that come, and those that come back from their turn, are each nearly in order: two lines hold most of them, and only
 * the others cost the steps of a heap.
 */
export class Turns<In> {
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
      let row = this.#line.head;
      const second = this.#secondLine.head;
      if (second !== undefined && (row === undefined || isBefore(second, row))) row = second;
      const other = this.#others.head;
      if (other !== undefined && (row === undefined || isBefore(other, row))) row = other;
      // Each change of an account comes with another turn.
      if (row === undefined || row.turn === row.tenant.turn) return row;
      this.#touched?.push(row);
      row.place!.remove(row);
      this.add(row);
    }
  }

  add(row: Row<In>): void {
    row.served = row.tenant.served;
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
      if (row.head !== undefined) this.add(row);
    }
  }
}

/** The claims of one tenant in a lane of a group, in the order in which they entered the queue. */
export class Row<In> extends LinkedList<Claim<In>> {
  readonly tenant: Account<In>;
  readonly turns: Turns<In>;
  /** Where it stands among the rows of the lane; undefined while it is not there. */
  place: RowPlace<In> | undefined;
  /** The account and turn of its tenant by which it was given that place. */
  served = 0;
  turn = 0;
  /** Its place in a heap. */
  index = 0;
  /** Its neighbours in a line. */
  previous: Row<In> | undefined;
  next: Row<In> | undefined;
  /** The choice that reads it, and the next claim for that. */
  choice = 0;
  at: Claim<In> | undefined;
  /** It reads the row from its end. */
  fromNewest = false;

  constructor(tenant: Account<In>, turns: Turns<In>) {
    super();
    this.tenant = tenant;
    this.turns = turns;
  }

  /** Puts a claim in its place among the others, most often the last. */
  add(claim: Claim<In>): void {
    let next: Claim<In> | undefined;
    if (this.tail !== undefined && this.tail.place > claim.place)
      for (next = this.head; next!.place < claim.place;) next = next!.next;
    this.insert(claim, next);
  }

  override insert(claim: Claim<In>, next?: Claim<In>): void {
    claim.row = this;
    super.insert(claim, next);
    if (this.place === undefined) this.turns.add(this);
  }

  override unlink(claim: Claim<In>): void {
    // A choice may set aside an item that it met by the claim of another tenant.
    if (this.at === claim) this.at = this.fromNewest ? claim.previous : claim.next;
    claim.row = undefined;
    super.unlink(claim);
    if (this.head === undefined) this.place?.remove(this);
  }
}

/** A `RowLine` or a `RowHeap`. */
export interface RowPlace<In> {
  /** The row that goes first. */
  readonly head: Row<In> | undefined;
  add(row: Row<In>): void;
  remove(row: Row<In>): void;
}

/** Whether the first goes before the second. */
export const isBefore = (row: { served: number; turn: number }, other: { served: number; turn: number }): boolean =>
  row.served < other.served || (row.served === other.served && row.turn < other.turn);

/** Rows that come in order: each to the end. */
export class RowLine<In> extends LinkedList<Row<In>> implements RowPlace<In> {
  /** Whether the row goes after all that stand here. */
  takes(row: Row<In>): boolean {
    return this.tail === undefined || isBefore(this.tail, row);
  }

  add(row: Row<In>): void {
    row.place = this;
    this.insert(row);
  }

  remove(row: Row<In>): void {
    row.place = undefined;
    this.unlink(row);
  }
}

/** Rows that come in any order: a binary heap. */
export class RowHeap<In> implements RowPlace<In> {
  head: Row<In> | undefined;
  readonly #rows: Row<In>[] = [];

  add(row: Row<In>): void {
    row.place = this;
    this.#up(row, this.#rows.length);
    this.head = this.#rows[0];
  }

  remove(row: Row<In>): void {
    const { index } = row;
    const last = this.#rows.pop()!;
    row.place = undefined;
    if (last !== row) {
      this.#up(last, index);
      this.#down(last, last.index);
    }
    this.head = this.#rows[0];
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
