import { type Clock, within } from "../core/runtime/runtime.ts";
import { warnOnce } from "../core/runtime/warnings.ts";
import { fairShare, type RateDemand } from "./fair-share.ts";

/** A store over which processes divide a limit; `rateShares()` of `sheaf/adapters/postgres` makes one. */
export interface RateShares {
  /**
   * Stores the demand of one process for `keepMs`, in place of its former one.
   * @returns the demands of the other processes that are still kept.
   */
  renew(member: string, demand: RateDemand, keepMs: number): PromiseLike<readonly RateDemand[]>;
  /** Deletes the demand of a process that has ended. */
  leave(member: string): PromiseLike<unknown>;
}

/** What a process knows of its own demand. */
export interface DemandView {
  readonly live: LaneView;
  readonly bulk: LaneView;
  /** Share of the limit that the largest recent burst of live calls takes. */
  readonly burst: number;
  /** The process has requests in flight or waiting items. */
  readonly isActive: boolean;
}

interface LaneView {
  /** Use so far, in milliseconds of the whole limit. */
  readonly usedMs: number;
  readonly isWaiting: boolean;
}

/** How often a process reports its demand while it is active. */
const renewMs = 1000;
/** Silence after which a process's share goes to the others: it has ended or needs none. */
const keepMs = 10_000;
/** An answer that takes longer may never come: ask again before the others forget this process. */
const patienceMs = keepMs / 2;
/** Averages over a few requests even if one takes seconds of the limit. */
const averageMs = 10_000;
/** Demand exceeds use by this factor, so that use can grow. */
const headroom = 1.25;
/** Least demand of a process whose items wait; also at least twice its share. */
const leastWaiting = 0.25;
/** Least demand of a process with live calls. */
const leastLive = 1 / 40;
/** Never 0: an idle process may become active while the store is down. */
const leastShare = 0.01;

/**
 * This process's share of a limit that several processes divide. Each reports every second how much it could use, and takes its fair
 * share. While the store is down it keeps its last share.
 */
export class ProcessShare {
  /** The whole limit until the store has answered. */
  #share = 1;
  readonly #shares: RateShares;
  readonly #clock: Clock;
  readonly #view: () => DemandView;
  readonly #changed: (share: number) => void;
  readonly #member = [Math.random(), Math.random()].map((number) => number.toString(36).slice(2)).join("");
  readonly #warn = warnOnce();
  #renewedAtMs = -Infinity;
  /** Recent use as a share of the limit. */
  readonly #uses = { live: { usedMs: 0, rate: 0 }, bulk: { usedMs: 0, rate: 0 } };
  #isRenewing = false;
  #hasLeft = true;
  #cancelTimer: (() => void) | undefined;

  /** `changed` gets a share of the limit, > 0 and <= 1. */
  constructor(shares: RateShares, clock: Clock, view: () => DemandView, changed: (share: number) => void) {
    this.#shares = shares;
    this.#clock = clock;
    this.#view = view;
    this.#changed = changed;
  }

  /** Called when the limit is used: reports the demand again if the last report is old. */
  touch(nowMs: number): void {
    if (this.#isRenewing || nowMs < this.#renewedAtMs + renewMs) return;
    this.#isRenewing = true;
    this.#hasLeft = false;
    void this.#renew(this.#demand(nowMs));
  }

  /** The last batcher has closed. */
  leave(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#renewedAtMs = -Infinity;
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    void this.#forget();
  }

  #demand(nowMs: number): RateDemand {
    const view = this.#view();
    const elapsedMs = nowMs - this.#renewedAtMs;
    this.#renewedAtMs = nowMs;
    const needed = (lane: "live" | "bulk"): number => {
      const { usedMs, isWaiting } = view[lane];
      const use = this.#uses[lane];
      const now = elapsedMs === Infinity ? 0 : Math.max(0, usedMs - use.usedMs) / elapsedMs;
      use.rate += (1 - Math.exp(-elapsedMs / averageMs)) * (now - use.rate);
      use.usedMs = usedMs;
      return isWaiting ? Math.max(leastWaiting, 2 * this.#share) : headroom * use.rate;
    };
    const [live, bulk] = [needed("live"), needed("bulk")];
    const least = view.live.usedMs > 0 ? Math.max(leastLive, headroom * view.burst) : 0;
    return { live: Math.min(1, Math.max(least, live)), bulk: Math.min(1, bulk) };
  }

  async #renew(demand: RateDemand): Promise<void> {
    try {
      const renewed = Promise.resolve(this.#shares.renew(this.#member, demand, keepMs));
      if (!(await within(renewed, patienceMs, this.#clock))) throw new Error(`no answer within ${patienceMs} ms`);
      const share = fairShare(demand, await renewed);
      if (!(share >= 0 && share <= 1)) throw new TypeError(`renew() must resolve to numbers of 0 to 1`);
      this.#share = Math.max(leastShare, share);
      this.#changed(this.#share);
    } catch (error) {
      const percent = Math.round(100 * this.#share);
      this.#warn(`rate limit: cannot reach the store of shares; keeping ${percent} % of the limit: ${inWords(error)}`);
    }
    this.#isRenewing = false;
    // A timer would keep an idle process from ending.
    if (this.#hasLeft || !this.#view().isActive) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(renewMs, () => this.touch(this.#clock.now()));
  }

  async #forget(): Promise<void> {
    try {
      await this.#shares.leave(this.#member);
    } catch {
      // If this fails, the store forgets it after keepMs.
    }
  }
}

const inWords = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300);
