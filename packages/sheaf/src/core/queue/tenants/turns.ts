import type { Account, Claim } from "../chunks/chunk.ts";

/** The claims of one tenant in a lane of a group, in the order in which they entered the queue. */
export class Row<In> {
  readonly tenant: Account;
  readonly turns: Turns<In>;
  first: Claim<In> | undefined;
  last: Claim<In> | undefined;
  /** Its place in the heap, -1 while it is not there. */
  index = -1;
  /** The account and turn of its tenant by which it was given that place. */
  account = 0;
  turn = 0;
  /** The choice that reads it, and the next claim for that. */
  choice = 0;
  at: Claim<In> | undefined;

  constructor(tenant: Account, turns: Turns<In>) {
    this.tenant = tenant;
    this.turns = turns;
  }

  /** Puts a claim in its place among the others, most often the last. */
  add(claim: Claim<In>): void {
    let next: Claim<In> | undefined;
    if (this.last !== undefined && this.last.place > claim.place) {
      next = this.first;
      while (next!.place < claim.place) next = next!.next;
    }
    this.insert(claim, next);
  }

  insert(claim: Claim<In>, next: Claim<In> | undefined): void {
    const previous = next === undefined ? this.last : next.previous;
    claim.row = this;
    claim.previous = previous;
    claim.next = next;
    if (previous === undefined) this.first = claim;
    else previous.next = claim;
    if (next === undefined) this.last = claim;
    else next.previous = claim;
    if (this.index === -1) this.turns.add(this);
  }

  remove(claim: Claim<In>): void {
    const { previous, next } = claim;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    // A choice may set aside an item that it met by the claim of another tenant.
    if (this.at === claim) this.at = this.turns.fromNewest ? previous : next;
    claim.row = claim.previous = claim.next = undefined;
    if (this.first === undefined && this.index !== -1) this.turns.drop(this);
  }
}

/**
 * The rows of a lane of a group, the one whose tenant goes next first: a binary heap. An account grows in other lanes too, so
 * a row learns of it when it comes to the top.
 */
export class Turns<In> {
  /** Counts the choices, each of which reads rows from their start. */
  choice = 0;
  /** It reads them from their end. */
  fromNewest = false;
  readonly #heap: Row<In>[] = [];
  /** Rows that a choice has moved or taken out. */
  #touched: Row<In>[] | undefined;

  /** The row whose tenant goes next. */
  top(): Row<In> | undefined {
    const heap = this.#heap;
    for (;;) {
      const row = heap[0];
      if (row === undefined) return undefined;
      const { account, turn } = row.tenant;
      if (row.account === account && row.turn === turn) return row;
      this.#touched?.push(row);
      row.account = account;
      row.turn = turn;
      this.#down(row, 0);
    }
  }

  add(row: Row<In>): void {
    row.account = row.tenant.account;
    row.turn = row.tenant.turn;
    this.#up(row, this.#heap.length);
  }

  drop(row: Row<In>): void {
    const { index } = row;
    const last = this.#heap.pop()!;
    row.index = -1;
    if (last === row) return;
    this.#up(last, index);
    this.#down(last, last.index);
  }

  /** A choice begins, which changes accounts and order only until `end`. */
  begin(fromNewest: boolean): void {
    this.choice++;
    this.fromNewest = fromNewest;
    this.#touched = [];
  }

  /** The choice has read the whole row. */
  exhausted(row: Row<In>): void {
    this.#touched!.push(row);
    this.drop(row);
  }

  end(): void {
    const touched = this.#touched!;
    this.#touched = undefined;
    for (const row of touched) {
      if (row.index !== -1) this.drop(row);
      if (row.first !== undefined) this.add(row);
    }
  }

  /** Moves a row from `index` towards the top. */
  #up(row: Row<In>, index: number): void {
    const heap = this.#heap;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent]!;
      if (!isBefore(row, above)) break;
      heap[index] = above;
      above.index = index;
      index = parent;
    }
    heap[index] = row;
    row.index = index;
  }

  #down(row: Row<In>, index: number): void {
    const heap = this.#heap;
    const { length } = heap;
    for (let child = 2 * index + 1; child < length; child = 2 * index + 1) {
      if (child + 1 < length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      const below = heap[child]!;
      if (!isBefore(below, row)) break;
      heap[index] = below;
      below.index = index;
      index = child;
    }
    heap[index] = row;
    row.index = index;
  }
}

/** Whether the first goes before the second. */
export const isBefore = (row: { account: number; turn: number }, other: { account: number; turn: number }): boolean =>
  row.account < other.account || (row.account === other.account && row.turn < other.turn);
