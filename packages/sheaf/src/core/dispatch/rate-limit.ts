import type { Amounts, RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats } from "../contract/rate-limit.ts";
import { BulkShare, goesFirst, type BulkState, type Flow, type Left } from "./bulk-share.ts";

/** What a limit may count. */
export const kinds = ["runs", "items", "weight"] as const;
export type Kind = (typeof kinds)[number];

/**
 * The given limits on dispatch (runs, items, weight, each in any period of its perMs), and the pause that an error with
 * `retryAfterMs` asks for. Items wait and batches fill before a slot is taken, never inside one.
 */
export class RateLimiter implements RateLimitSeat {
  readonly maxWeight: number;
  readonly pauses: Pauses = new Pauses();
  /** Counted so far. */
  readonly used: Record<Kind, number> = { runs: 0, items: 0, weight: 0 };
  /** This process's part of the limits, > 0 and <= 1. */
  share = 1;
  readonly #windows: Limit[] = [];

  constructor(limits: readonly RateLimit[]) {
    this.maxWeight = Math.min(...limits.map(({ weight = Infinity }) => weight));
    for (const limit of limits) {
      for (const kind of kinds) {
        const { [kind]: most, perMs } = limit;
        if (most !== undefined)
          this.#windows.push({
            kind,
            window: new Window(most, perMs),
            perMs,
            bulk: new BulkShare(perMs, perMs > longestRateMs),
          });
      }
    }
  }

  room(nowMs: number, isBulk: boolean): { readonly items: number; readonly weight: number } {
    const room = { runs: Infinity, items: Infinity, weight: Infinity };
    for (const limit of this.#windows) {
      const { kind, window, bulk } = limit;
      const most = isBulk ? bulk.most(this.#flow(limit)) : window.room(nowMs, this.share);
      if (kind !== "runs") room[kind] = Math.min(room[kind], most);
    }
    room.items = Math.max(1, Math.floor(room.items));
    return room;
  }

  fill(nowMs: number): { readonly items: number; readonly weight: number } {
    const fill = { runs: Infinity, items: Infinity, weight: Infinity };
    for (const limit of this.#windows) {
      const { kind, window, bulk } = limit;
      const most = bulk.fill(nowMs, window.left(nowMs, this.share), this.#flow(limit), this.#left(limit, nowMs));
      fill[kind] = Math.min(fill[kind], most);
    }
    return fill;
  }

  readyAtMs(nowMs: number, items: number, weight: number, isBulk: boolean): number {
    const readyAtMs = this.amountsReadyAtMs(nowMs, { runs: 1, items, weight }, isBulk);
    // Bulk has a pace of its own.
    if (readyAtMs > nowMs || isBulk) return readyAtMs;
    return this.#windows.reduce((atMs, { window }) => Math.max(atMs, window.spreadAtMs(nowMs, this.share)), nowMs);
  }

  /** From when on there is room for so much, however it is spread. */
  amountsReadyAtMs(nowMs: number, amounts: Amounts, isBulk: boolean): number {
    let readyAtMs = this.pauses.endsAtMs;
    for (const limit of this.#windows) {
      const { kind, window, bulk } = limit;
      const atMs = isBulk
        ? bulk.readyAtMs(nowMs, amounts[kind], this.#flow(limit), this.#left(limit, nowMs))
        : window.readyAtMs(nowMs, amounts[kind], this.share);
      readyAtMs = Math.max(readyAtMs, atMs);
    }
    return readyAtMs;
  }

  isBulkDue(nowMs: number, items: number, weight: number): boolean {
    return goesFirst(this.bulkStates(nowMs, { runs: 1, items, weight }));
  }

  bulkStates(nowMs: number, amounts: Amounts): BulkState[] {
    return this.#windows.map((limit) =>
      limit.bulk.stateOf(nowMs, amounts[limit.kind], this.#flow(limit), this.#left(limit, nowMs)),
    );
  }

  /** Part of the limit that live calls have lately taken at once. */
  burst(nowMs: number): number {
    return this.#windows.reduce((most, { window, bulk }) => Math.max(most, bulk.burst(nowMs) / window.limit), 0);
  }

  spend(nowMs: number, items: number, weight: number, bulkRate: number): void {
    const all = { runs: 1, items, weight };
    const bulk = bulkOf(all, bulkRate);
    this.#take(nowMs, all, bulk);
    for (const limit of this.#windows) {
      const { kind } = limit;
      limit.bulk.spend(nowMs, all[kind] - bulk[kind], bulk[kind], this.#flow(limit));
    }
  }

  correct(nowMs: number, weight: number): void {
    this.#take(nowMs, { runs: 0, items: 0, weight });
  }

  #left({ window }: Limit, nowMs: number): Left {
    return {
      leftAtMs: (amount) => window.leftAtMs(nowMs, amount, this.share),
      neededFor: (perMs) => window.neededFor(nowMs, perMs),
    };
  }

  #flow({ window, perMs }: Limit): Flow {
    const holds = this.share * window.limit;
    return { perMs: holds / perMs, holds };
  }

  pause(nowMs: number, durationMs: number): void {
    const { endsAtMs } = this.pauses;
    this.pauses.pause(nowMs, durationMs);
    if (this.pauses.endsAtMs > endsAtMs) this.refused(nowMs);
  }

  /** The service asked for a pause although the limits were kept: they get a margin. */
  refused(nowMs: number): void {
    for (const { window } of this.#windows) window.refused(nowMs);
  }

  get resumesAtMs(): number {
    return this.pauses.endsAtMs;
  }

  pausedMsSince(atMs: number): number {
    return this.pauses.since(atMs);
  }

  leave(): void {}

  /** Of the tightest limit of each kind. */
  figures(kind: Kind, nowMs: number): RateLimitFigures {
    const figures = { perMinute: null, left: null, holds: null, used: this.used[kind] };
    return this.#windows.reduce<RateLimitFigures>((tightest, { kind: counted, window, perMs }) => {
      if (counted !== kind) return tightest;
      return tighter(tightest, {
        perMinute: (window.limit * 60_000) / perMs,
        left: window.left(nowMs, this.share),
        holds: window.limit,
      });
    }, figures);
  }

  stats(nowMs: number): RateLimitStats {
    return {
      runs: this.figures("runs", nowMs),
      items: this.figures("items", nowMs),
      weight: this.figures("weight", nowMs),
      share: this.share,
      refused: 0,
      pausedMs: this.pauses.spentMs(nowMs),
    };
  }

  #take(nowMs: number, amounts: Amounts, bulk?: Amounts): void {
    for (const kind of kinds) this.used[kind] += amounts[kind];
    for (const { kind, window } of this.#windows)
      if (amounts[kind] !== 0) window.add(nowMs, amounts[kind], bulk?.[kind]);
  }
}

interface Limit {
  readonly kind: Kind;
  readonly window: Window;
  readonly perMs: number;
  readonly bulk: BulkShare;
}

/** What bulk has of a run of which `bulkRate` of the items are bulk: a run that holds a live call is a live one. */
export const bulkOf = ({ runs, items, weight }: Amounts, bulkRate: number): Amounts => ({
  runs: bulkRate === 1 ? runs : 0,
  items: bulkRate * items,
  weight: bulkRate * weight,
});

/** The lesser of what two limits of one kind allow. */
export function tighter(figures: RateLimitFigures, other: Omit<RateLimitFigures, "used">): RateLimitFigures {
  const less = (a: number | null, b: number | null): number | null =>
    a === null ? b : b === null ? a : Math.min(a, b);
  return {
    perMinute: less(figures.perMinute, other.perMinute),
    left: less(figures.left, other.left),
    holds: less(figures.holds, other.holds),
    used: figures.used,
  };
}

/** Parts of a period that are remembered: what was used in one leaves the window at the end of it. */
const partsOfPeriod = 256;
/** Less than this part of the limit is not worth a batch while larger ones wait. */
const crumb = 1 / 64;
/** Each pause that the service asked for makes the period this much longer, up to `longest`; 20 periods take it back. */
const longer = 0.02;
const longest = 0.1;
const takenBackPerPeriod = longer / 20;

/** A limit of a longer period is a quota, which a job may use at once: it is short only when nothing is left of it. */
const longestRateMs = 60_000;
/** Before this part of the period has passed, a burst says nothing about the rate. */
const burst = 0.1;
/** Once short, at most this many times the mean pace: what a late timer lost is caught up, and a bunch does not come back. */
const catchUp = 1.1;

/** Beside bulk a limit is short only where live calls alone use this part of it: bulk yields. */
const liveNearly = 0.94;

interface Part {
  readonly beganAtMs: number;
  endsAtMs: number;
  amount: number;
  bulk: number;
}

/**
 * At most `limit` in any period of `perMs`, whenever it begins. All of it may go at once; where that is less than what wants to go,
 * it is spread over the period from then on. In bounded memory: at worst it counts a 256th of the period too
 * long. A service counts by its own clock when requests reach it, so one that refuses gets a margin.
 */
export class Window {
  readonly limit: number;
  readonly #perMs: number;
  #margin = 0;
  #marginAtMs = -Infinity;
  readonly #parts: Part[] = [];
  #sum = 0;
  /** Of it, what bulk has used. */
  #bulk = 0;
  /** What went last, bulk apart. */
  #lastAtMs = -Infinity;
  #lastAmount = 0;
  /** Until a period has passed in which nothing had to wait. */
  #shortUntilMs = -Infinity;

  constructor(limit: number, perMs: number) {
    this.limit = limit;
    this.#perMs = perMs;
  }

  /** The amount that may go now. Negative where more was used than allowed. `share`: this process's part of the limit. */
  left(nowMs: number, share: number = 1): number {
    this.#leave(nowMs);
    return share * this.limit - this.#sum;
  }

  /** The most that the next batch should hold: what is left, so that nothing of the limit stays unused, or all where hardly anything is. */
  room(nowMs: number, share: number = 1): number {
    const left = this.left(nowMs, share);
    return left >= this.#leastRoom(share) ? left : share * this.limit;
  }

  /** From when on there is room for `amount`, or a batch can be cut to the room; one that is more than the limit, once nothing else is in the window. */
  readyAtMs(nowMs: number, amount: number, share: number = 1): number {
    const left = this.left(nowMs, share);
    const least = this.#leastRoom(share);
    // It was cut to what is left, unless that was a crumb, or one item is more.
    const atMs = this.leftAtMs(nowMs, left < least ? Math.min(least, amount) : amount, share);
    return atMs > nowMs ? this.#waitsUntil(atMs) : nowMs;
  }

  /** When `amount` is left, or all where it is more than that. */
  leftAtMs(nowMs: number, amount: number, share: number = 1): number {
    // A millionth is a rounding error.
    const missing = Math.min(share * this.limit, amount) - this.left(nowMs, share) - 1e-6;
    let freed = 0;
    for (const part of this.#parts) {
      if (freed >= missing) break;
      freed += part.amount;
      if (freed >= missing) return part.endsAtMs + this.#keptMs(nowMs);
    }
    return nowMs;
  }

  /** The next moment at the steadiest pace, where the limit is short: one that can be kept until more is free, and then, until all is. */
  spreadAtMs(nowMs: number, share: number): number {
    if (!this.#isShort(nowMs, share)) return nowMs;
    const keptMs = this.#keptMs(nowMs);
    let pace = (catchUp * share * this.limit) / keptMs;
    let free = this.left(nowMs, share) + this.#lastAmount;
    for (const { endsAtMs, amount } of this.#parts) {
      pace = Math.min(pace, free / (endsAtMs + keptMs - this.#lastAtMs));
      free += amount;
    }
    const atMs = this.#lastAtMs + Math.min(keptMs, this.#lastAmount / pace);
    return atMs > nowMs ? this.#waitsUntil(atMs) : nowMs;
  }

  #waitsUntil(atMs: number): number {
    this.#shortUntilMs = Math.max(this.#shortUntilMs, atMs + this.#perMs);
    return atMs;
  }

  /** Whether something had to wait lately, or will before more is free if all goes on as it began. */
  #isShort(nowMs: number, share: number): boolean {
    const used = (this.#sum - this.#bulk) / (share * this.limit);
    if (this.#bulk > 0 && used <= liveNearly) return false;
    if (nowMs <= this.#shortUntilMs) return true;
    const first = this.#parts[0];
    if (first === undefined || this.#perMs > longestRateMs) return false;
    const passed = (nowMs - first.beganAtMs) / this.#perMs;
    return passed > burst && used > 0.5 && used > passed;
  }

  /** What must be left so that `perMs` can go from now on, until what went before leaves the window. */
  neededFor(nowMs: number, perMs: number): number {
    const keptMs = this.#keptMs(nowMs);
    let most = 0;
    let freed = 0;
    for (const part of this.#parts) {
      most = Math.max(most, perMs * (part.endsAtMs + keptMs - nowMs) - freed);
      freed += part.amount;
    }
    return Math.max(most, perMs * this.#perMs - freed);
  }

  /** The service asked for a pause although the limit was kept. */
  refused(nowMs: number): void {
    this.#margin = Math.min(longest, this.#marginNow(nowMs) + longer);
    this.#marginAtMs = nowMs;
  }

  /** Counts what goes, and the bulk in it. A negative amount takes back what was counted last. */
  add(nowMs: number, amount: number, bulk: number = 0): void {
    this.#leave(nowMs);
    if (amount < 0) return this.#takeBack(-amount);
    if (amount > bulk) {
      this.#lastAtMs = nowMs;
      this.#lastAmount = amount - bulk;
    }
    const last = this.#parts.at(-1);
    if (last !== undefined && nowMs - last.beganAtMs < this.#perMs / partsOfPeriod) {
      last.amount += amount;
      last.bulk += bulk;
      last.endsAtMs = Math.max(last.endsAtMs, nowMs);
    } else {
      this.#parts.push({ beganAtMs: nowMs, endsAtMs: nowMs, amount, bulk });
    }
    this.#sum += amount;
    this.#bulk += bulk;
  }

  #takeBack(amount: number): void {
    this.#lastAmount = Math.max(0, this.#lastAmount - amount);
    for (let i = this.#parts.length - 1; i >= 0 && amount > 0; i--) {
      const part = this.#parts[i]!;
      const taken = Math.min(part.amount, amount);
      part.amount -= taken;
      const bulk = Math.min(part.bulk, part.amount);
      this.#bulk += bulk - part.bulk;
      part.bulk = bulk;
      this.#sum -= taken;
      amount -= taken;
    }
  }

  #leastRoom(share: number): number {
    return crumb * share * this.limit;
  }

  #marginNow(nowMs: number): number {
    return Math.max(0, this.#margin - (takenBackPerPeriod * (nowMs - this.#marginAtMs)) / this.#perMs);
  }

  #keptMs(nowMs: number): number {
    return this.#perMs * (1 + this.#marginNow(nowMs));
  }

  #leave(nowMs: number): void {
    const keptMs = this.#keptMs(nowMs);
    let gone = 0;
    while (gone < this.#parts.length && this.#parts[gone]!.endsAtMs + keptMs <= nowMs) this.#gone(this.#parts[gone++]!);
    if (gone > 0) this.#parts.splice(0, gone);
    if (this.#parts.length === 0) this.#sum = this.#bulk = 0;
  }

  #gone({ amount, bulk }: Part): void {
    this.#sum -= amount;
    this.#bulk -= bulk;
  }
}

/** Pauses that are remembered; of more only the latest count. */
const maxKept = 1024;

/** The pauses that a service has asked for. */
export class Pauses {
  /** End of the latest. */
  endsAtMs: number = -Infinity;
  /** In order, none touching the next. */
  readonly #pauses: { readonly beganAtMs: number; endsAtMs: number }[] = [];

  /** One of 0 ms or less is none. */
  pause(nowMs: number, durationMs: number): void {
    const endsAtMs = nowMs + durationMs;
    if (durationMs <= 0 || endsAtMs <= this.endsAtMs) return;
    const last = this.#pauses.at(-1);
    if (last !== undefined && nowMs <= last.endsAtMs) last.endsAtMs = endsAtMs;
    else this.#pauses.push({ beganAtMs: nowMs, endsAtMs });
    if (this.#pauses.length > maxKept) this.#pauses.shift();
    this.endsAtMs = endsAtMs;
  }

  /** Their length since then, with the rest of the one that is going on. */
  since(atMs: number): number {
    let sum = 0;
    for (let i = this.#pauses.length - 1; i >= 0 && this.#pauses[i]!.endsAtMs > atMs; i--)
      sum += this.#pauses[i]!.endsAtMs - Math.max(atMs, this.#pauses[i]!.beganAtMs);
    return sum;
  }

  /** How long all pauses together have lasted so far. */
  spentMs(nowMs: number): number {
    return this.since(-Infinity) - Math.max(0, this.endsAtMs - nowMs);
  }
}
