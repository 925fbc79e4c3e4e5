import { Batch, type Entry } from "../queue/entry.ts";
import type { LaneQueue } from "../queue/group.ts";
import type { Claim, Row, Turns } from "../queue/turns.ts";
import { type Account, rowOf, type Tenants } from "../queue/tenants.ts";
import { Cursor } from "./cursors.ts";
import type { Queue } from "../queue/queue.ts";

/**
 * Walks a lane queue by turns of its tenants; the entries of one in order of arrival. Under standing overload those of a tenant
 * whose oldest has waited for too long go from the newest on: the others have no part in it.
 */
export class ByTurns<In> extends Cursor<In> {
  readonly #tenants: Tenants<In>;
  readonly #turns: Turns<In>;
  /** Blocked ones that may follow the item before them. */
  readonly #inserted: Claim<In>[] = [];
  /** Claims on items that other tenants have a claim on too, and whose turn has come. */
  #met: Set<Claim<In>> | undefined;
  #payer!: Account<In>;

  constructor(laneQueue: LaneQueue<In>, tenants: Tenants<In>, newestFirst: boolean) {
    super(laneQueue, newestFirst);
    this.#tenants = tenants;
    this.#turns = laneQueue.turns!;
  }

  override begin(): void {
    this.#turns.begin();
  }

  override end(): void {
    for (const claim of this.#inserted) claim.row?.unlink(claim);
    this.#turns.end();
  }

  override payer(): Account<In> {
    return this.#payer;
  }

  override atEnd(): boolean {
    return this.#next() === undefined;
  }

  override take(): Entry<In> {
    const row = this.#next()!;
    const claim = row.at!;
    this.#payer = row.tenant;
    for (const shared of claim.all ?? []) (this.#met ??= new Set()).add(shared);
    row.at = after(claim);
    return claim.entry;
  }

  override went(weight: number): void {
    this.#tenants.tryCharge(this.#payer, weight);
  }

  override insert({ keys }: Entry<In>): void {
    const own = keys!.claim!;
    for (const claim of own.all ?? [own]) {
      if (claim.row !== undefined) continue;
      this.#met?.delete(claim); // when it was met, it was set aside
      const row = rowOf(claim);
      this.#read(row);
      // Where it is read next, also from the newest on.
      const next = !row.fromNewest ? row.at : row.at === undefined ? row.head : row.at.next;
      row.insert(claim, next);
      row.at = claim;
      this.#inserted.push(claim);
    }
  }

  /** The row whose tenant goes next; it has a claim to read. */
  #next(): Row<In> | undefined {
    for (;;) {
      const row = this.#turns.top();
      if (row === undefined) return undefined;
      this.#read(row);
      while (row.at !== undefined && this.#met?.has(row.at) === true) row.at = after(row.at);
      if (row.at !== undefined) return row;
      this.#turns.exhausted(row);
    }
  }

  /** Makes sure that this choice reads the row from its start on. */
  #read(row: Row<In>): void {
    if (row.choice === this.#turns.choice) return;
    row.choice = this.#turns.choice;
    row.fromNewest = this.newestFirst && this.#hasWaitedTooLong(row);
    row.at = row.fromNewest ? row.tail : row.head;
  }

  #hasWaitedTooLong({ head, tenant }: Row<In>): boolean {
    return head !== undefined && this.laneQueue.group.isTooOld(head.entry.terms.arrivedAtMs, tenant.leavers);
  }
}

const after = <In>(claim: Claim<In>): Claim<In> | undefined => (claim.row!.fromNewest ? claim.previous : claim.next);

/** Takes the front of a lane queue by turns of tenants. */
export function takeTurns<In>(queue: Queue<In>, laneQueue: LaneQueue<In>, turns: Turns<In>, limit: number): Batch<In> {
  const size = Math.min(limit, laneQueue.live);
  const batch = new Batch<In>(size);
  for (let left = size; left > 0; left--) {
    const { tenant, entry } = turns.top()!.head!;
    queue.tenants!.charge(tenant, entry.weight);
    queue.take(entry, laneQueue, batch);
  }
  return batch;
}
