import type { Lane } from "../contract/settings.ts";
import type { Entry } from "./entry.ts";
import type { EqualItems } from "./equal-items.ts";
import type { OrderKey } from "./order-keys.ts";
import type { Account } from "./tenants.ts";
import type { Claim } from "./turns.ts";

/** What the key functions of a batcher say of an item. A property is one line. */
export class Keys<In = unknown> {
  weight = 1;
  /** With `weigh`: from when on no newer entry may overtake it because it costs less. */
  dueAtMs: number | undefined = undefined;
  group: unknown = undefined;
  orderKey: unknown = undefined;
  dedupeKey: unknown = undefined;
  tenant: Account<In> | undefined = undefined;
  claim: Claim<In> | undefined = undefined;
  ties: Ties<In> | undefined = undefined;
}

/** What only some entries have: how they are tied to others, and how they have moved. A property is one line. */
export class Ties<In = unknown> {
  readonly entry: Entry<In>;
  /** While it waits or runs, with an order key: that key, and its neighbours among the key's waiting items. */
  order: OrderKey<In> | undefined = undefined;
  previous: Ties<In> | undefined = undefined;
  next: Ties<In> | undefined = undefined;
  /** With `orderKey`: the item that entered the queue earlier has the lower rank. */
  rank = 0;
  /** Where equal calls can find it, as long as they can. */
  equal: EqualItems<In> | undefined = undefined;
  /** Further callers of the same item; each is an entry that is in no queue. */
  sharers: Entry<In>[] | undefined = undefined;
  /** Where it is not in the lane of its caller. */
  lane: Lane | undefined = undefined;
  /** A bulk item that an item of a higher lane has lifted to its own. */
  isLifted = false;
  /** How often it has come back from a batch that did not run, and the last of them. */
  putBacks = 0;
  putBackFrom: number | undefined = undefined;

  constructor(entry: Entry<In>) {
    this.entry = entry;
  }
}
