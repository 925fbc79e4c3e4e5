import type { Account, Claim } from "../chunks/chunk.ts";

/** The claims of one tenant in a lane of a group, in the order in which they entered the queue. */
export class Row<In> {
  readonly tenant: Account;
  readonly turns: RowTurns<In>;
  first: Claim<In> | undefined;
  last: Claim<In> | undefined;
  /** Where it stands among the rows of the lane; undefined while it is not there. */
  place: RowPlace<In> | undefined;
  /** The account and turn of its tenant by which it was given that place. */
  account = 0;
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

  constructor(tenant: Account, turns: RowTurns<In>) {
    this.tenant = tenant;
    this.turns = turns;
  }

  /** Puts a claim in its place among the others, most often the last. */
  add(claim: Claim<In>): void {
    const { last } = this;
    if (last !== undefined && last.place > claim.place) {
      let next = this.first;
      while (next!.place < claim.place) next = next!.next;
      return this.insert(claim, next);
    }
    claim.row = this;
    claim.previous = last;
    if (last === undefined) this.first = claim;
    else last.next = claim;
    this.last = claim;
    if (this.place === undefined) this.turns.add(this);
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
    if (this.place === undefined) this.turns.add(this);
  }

  remove(claim: Claim<In>): void {
    const { previous, next } = claim;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    // A choice may set aside an item that it met by the claim of another tenant.
    if (this.at === claim) this.at = this.fromNewest ? previous : next;
    claim.row = claim.previous = claim.next = undefined;
    if (this.first === undefined) this.place?.remove(this);
  }
}

// Where a row is. The classes import this module and not the reverse.

/** `Turns`. */
export interface RowTurns<In> {
  add(row: Row<In>): void;
}

/** A `RowLine` or a `RowHeap`. */
export interface RowPlace<In> {
  /** The row that goes first. */
  readonly first: Row<In> | undefined;
  add(row: Row<In>): void;
  remove(row: Row<In>): void;
}

/** Whether the first goes before the second. */
export const isBefore = (row: { account: number; turn: number }, other: { account: number; turn: number }): boolean =>
  row.account < other.account || (row.account === other.account && row.turn < other.turn);
