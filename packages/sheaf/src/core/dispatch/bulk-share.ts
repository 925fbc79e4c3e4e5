/** Of a limit bulk is promised this part, however much live calls need. */
const floorShare = 0.05;
/** Bursts of live calls are counted in these parts of the period; as much bulk goes at once. */
const partsOfPeriod = 16;
/** This part of the limit is left for live calls, also where none has come yet. */
const leastReserve = 1 / 40;
/** After so many periods a burst counts for a third. */
const rememberedPeriods = 4;

/** A limit as it is now: what flows in, in a millisecond, and the most that can be left at once. */
export interface Flow {
  readonly perMs: number;
  readonly holds: number;
}

/** A limit as bulk meets it now. */
export interface Left {
  /** When so much is left. */
  leftAtMs(amount: number): number;
  /** What must be left for those who need `perMs` from now on, until enough flows in. */
  neededFor(perMs: number): number;
}

/** Whether a bulk batch may go: as live calls leave it, before them because it is its turn, or not yet. */
export type BulkState = "ready" | "due" | "waits";

/** Whether it goes before live calls; `states` are those of all limits. */
export const goesFirst = (states: readonly BulkState[]): boolean => states.includes("due") && !states.includes("waits");

/**
 * What bulk may spend of a limit, so that live calls find what they will need of it. Bulk goes at the pace that live calls
 * leave over a period, and only where what they need in a burst is left too. Both are learned from what they spend. Where they
 * would spend the whole limit, bulk has a twentieth of it, by turns.
 */
export class BulkShare {
  readonly #periodMs: number;
  readonly #isQuota: boolean;
  /** Of live calls, fading over a period. */
  #spent = 0;
  #spentAtMs = -Infinity;
  #beganAtMs: number | undefined;
  #part = 0;
  #partBeganAtMs = -Infinity;
  #burst = 0;
  #burstAtMs = -Infinity;
  /** What bulk may spend at its pace; full before the first look. */
  #level = Infinity;
  #filledAtMs = -Infinity;
  /** Of the bulk batch that waits: one item may be more than a part. */
  #asked = 0;
  /** Bulk has waited for its turn since then. */
  #waitsSinceMs: number | undefined;

  /** Of a quota half may go at once, since a job that is smaller should not last for the whole period. */
  constructor(periodMs: number, isQuota: boolean = false) {
    this.#periodMs = periodMs;
    this.#isQuota = isQuota;
  }

  /** The most that the next bulk batch should hold. */
  most({ perMs, holds }: Flow): number {
    return Math.min(holds, (perMs * this.#periodMs) / partsOfPeriod);
  }

  /** What a live batch may take along of bulk, where `left` is left of the limit. */
  fill(nowMs: number, amountLeft: number, flow: Flow, left: Left): number {
    this.#waitsSinceMs ??= nowMs;
    return Math.max(0, Math.min(this.#levelAt(nowMs, flow), amountLeft - this.#reserve(nowMs, flow, left)));
  }

  /** When a bulk batch may go that spends `amount`; */
  readyAtMs(nowMs: number, amount: number, flow: Flow, left: Left): number {
    const wanted = this.#wanted(amount, flow);
    const inTurnAtMs = Math.max(this.#turnAtMs(nowMs, wanted, flow), left.leftAtMs(wanted));
    const readyAtMs = Math.min(this.#spareAtMs(nowMs, wanted, flow, left), inTurnAtMs);
    if (readyAtMs > nowMs) this.#waitsSinceMs ??= nowMs;
    return readyAtMs;
  }

  stateOf(nowMs: number, amount: number, flow: Flow, left: Left): BulkState {
    const wanted = this.#wanted(amount, flow);
    if (this.#spareAtMs(nowMs, wanted, flow, left) <= nowMs) return "ready";
    return this.#turnAtMs(nowMs, wanted, flow) <= nowMs ? "due" : "waits";
  }

  /** `flow` is undefined where no limit is known yet. */
  spend(nowMs: number, live: number, bulk: number, flow: Flow | undefined): void {
    this.#beganAtMs ??= nowMs;
    if (live > 0) this.#learn(nowMs, live);
    if (bulk <= 0 || flow === undefined) return;
    this.#level = this.#levelAt(nowMs, flow) - bulk;
    if (this.#waitsSinceMs !== undefined)
      this.#waitsSinceMs = Math.min(nowMs, this.#waitsSinceMs + bulk / (floorShare * flow.perMs));
  }

  /** What was spent last was so much more, or less where it is negative. */
  correct(amount: number, isBulk: boolean): void {
    if (isBulk) this.#level -= amount;
    else this.#spent = Math.max(0, this.#spent + amount);
  }

  #learn(nowMs: number, live: number): void {
    this.#spent = this.#fading(this.#spent, this.#spentAtMs, this.#periodMs, nowMs) + live;
    this.#spentAtMs = nowMs;
    if (nowMs - this.#partBeganAtMs >= this.#periodMs / partsOfPeriod) {
      this.#part = 0;
      this.#partBeganAtMs = nowMs;
    }
    this.#part += live;
    if (this.#part < this.burst(nowMs)) return;
    this.#burst = this.#part;
    this.#burstAtMs = nowMs;
  }

  #wanted(amount: number, flow: Flow): number {
    this.#asked = amount;
    return Math.min(amount, Math.max(this.most(flow), Math.min(1, flow.holds)));
  }

  /** At its pace, once what live calls may need is left too. */
  #spareAtMs(nowMs: number, amount: number, flow: Flow, left: Left): number {
    const missing = amount - this.#levelAt(nowMs, flow);
    // A millionth is a rounding error.
    const pacedAtMs = missing <= 1e-6 ? nowMs : nowMs + missing / this.#pacePerMs(nowMs, flow);
    return Math.max(pacedAtMs, left.leftAtMs(Math.min(flow.holds, amount + this.#reserve(nowMs, flow, left))));
  }

  #turnAtMs(nowMs: number, amount: number, { perMs }: Flow): number {
    return (this.#waitsSinceMs ?? nowMs) + amount / (floorShare * perMs);
  }

  #levelAt(nowMs: number, flow: Flow): number {
    const elapsedMs = this.#filledAtMs === -Infinity ? 0 : nowMs - this.#filledAtMs;
    this.#filledAtMs = nowMs;
    const most = Math.max(this.#isQuota ? flow.holds / 2 : this.most(flow), Math.min(this.#asked, flow.holds));
    return (this.#level = Math.min(most, this.#level + elapsedMs * this.#pacePerMs(nowMs, flow)));
  }

  #pacePerMs(nowMs: number, { perMs }: Flow): number {
    return Math.max(floorShare * perMs, perMs - this.#livePerMs(nowMs));
  }

  #livePerMs(nowMs: number): number {
    if (this.#beganAtMs === undefined) return 0;
    const countedMs = Math.max(nowMs - this.#beganAtMs, this.#periodMs / partsOfPeriod);
    const counted = this.#periodMs * (1 - Math.exp(-countedMs / this.#periodMs));
    return this.#fading(this.#spent, this.#spentAtMs, this.#periodMs, nowMs) / counted;
  }

  #reserve(nowMs: number, { holds }: Flow, left: Left): number {
    const burst = this.burst(nowMs);
    const needed = Math.max(burst, left.neededFor(this.#livePerMs(nowMs)) + burst / 2);
    return Math.min((1 - floorShare) * holds, Math.max(leastReserve * holds, needed));
  }

  /** What live calls have lately spent at once. */
  burst(nowMs: number): number {
    return this.#fading(this.#burst, this.#burstAtMs, rememberedPeriods * this.#periodMs, nowMs);
  }

  #fading(amount: number, atMs: number, overMs: number, nowMs: number): number {
    return amount === 0 ? 0 : amount * Math.exp((atMs - nowMs) / overMs);
  }
}
