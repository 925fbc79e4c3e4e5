import type { QueueView } from "../policy.ts";
import {
  apartOverTogether,
  arrivalsToPay,
  clumpHoldShare,
  clumpPieceShares,
  eventsRemembered,
  fewReturning,
  lookAheadDivisor,
  octaves,
  returnHoldShare,
  roundingMs,
  sameMomentMs,
} from "./constants.ts";

/**
 * Rule *linger*: hold for the rest of a clump, or for callers just answered, while they come fast enough to pay for it. An
 * arrival that joins the batch saves s(0) / W of slot time, and the n items that wait pay for the hold.
 */
export class Linger {
  // By the time since the last arrival: the next arrival. High early on where arrivals come in clumps.
  readonly #gaps = new EventRate();
  // By the time since the last batch ended: an arrival, for each caller answered and not yet back.
  readonly #returns = new EventRate();
  #lastArrivalAtMs = 0;
  #lastDoneAtMs = -Infinity;
  #missing = 0;
  #exposedToMs = 0;

  /** @param gapMs since the arrivals before these; 0 for the first */
  arrived(nowMs: number, arrivals: number, gapMs: number): void {
    this.#lastArrivalAtMs = nowMs;
    if (gapMs > sameMomentMs) {
      this.#gaps.expose(0, gapMs, 1);
      this.#gaps.happened(gapMs);
    }
    this.#exposeMissing(nowMs);
    const back = Math.min(arrivals, this.#missing);
    this.#returns.happened(nowMs - this.#lastDoneAtMs, back);
    this.#missing -= back;
  }

  /** A batch of `size` ended: as many callers may come back. */
  observe(nowMs: number, size: number): void {
    this.#exposeMissing(nowMs);
    this.#lastDoneAtMs = nowMs;
    this.#missing = size;
    this.#exposedToMs = 0;
  }

  /** @param share the items that a slot can expect: with as many here, no other is worth waiting for */
  until({ nowMs, waiting, oldestAtMs, slots, cost }: QueueView, share: number): number {
    const { fixedMs } = cost;
    const heldFromAtMs = Math.max(oldestAtMs, this.#lastDoneAtMs);
    if (nowMs >= heldFromAtMs + fixedMs * returnHoldShare) return nowMs;
    const payingPerMs = (arrivalsToPay * waiting * slots) / fixedMs;
    const least = octaveOf(fixedMs / lookAheadDivisor);
    let holdEndsAtMs = nowMs;
    const firstBack = octaveOf(nowMs - this.#lastDoneAtMs + roundingMs);
    const lastBack = Math.max(firstBack, least);
    const returningPerMs = this.#missing * this.#returns.between(firstBack, lastBack);
    const apartMs = cost.at(waiting) + cost.at(this.#missing);
    const isWorthIt = apartMs > apartOverTogether * cost.at(waiting + this.#missing);
    if (isWorthIt && returningPerMs > payingPerMs && waiting < share) {
      holdEndsAtMs = Math.min(this.#lastDoneAtMs + octaveEndMs(lastBack), heldFromAtMs + fixedMs * returnHoldShare);
    }
    const first = octaveOf(nowMs - this.#lastArrivalAtMs + roundingMs);
    const last = Math.max(first, least);
    const arrivingPerMs = this.#gaps.between(first, last);
    const enough = slots > 1 && returningPerMs < fewReturning * arrivingPerMs ? clumpPieceShares * share : share;
    if (arrivingPerMs > payingPerMs && waiting < enough) {
      holdEndsAtMs = Math.max(
        holdEndsAtMs,
        Math.min(this.#lastArrivalAtMs + octaveEndMs(last), heldFromAtMs + fixedMs * clumpHoldShare),
      );
    }
    return holdEndsAtMs;
  }

  #exposeMissing(nowMs: number): void {
    const elapsedMs = nowMs - this.#lastDoneAtMs;
    if (this.#missing === 0 || elapsedMs <= this.#exposedToMs) return;
    this.#returns.expose(this.#exposedToMs, elapsedMs, this.#missing);
    this.#exposedToMs = elapsedMs;
  }
}

/**
 * How often something happens, per millisecond and unit waited for, by the time since it could first happen: events ÷
 * exposure in octaves from 1 µs. Constant for a Poisson stream, high at first for clumps and for callers who come back.
 */
export class EventRate {
  // Not typed arrays, which take longer to make: some batchers live for one request.
  readonly #events = new Array<number>(octaves).fill(0);
  readonly #exposure = new Array<number>(octaves).fill(0);
  #total = 0;

  /** `units` were waited for between these two moments after the start, in milliseconds. */
  expose(fromMs: number, toMs: number, units: number): void {
    for (let i = octaveOf(fromMs); fromMs < toMs; i++) {
      const endMs = i < octaves - 1 ? Math.min(toMs, octaveEndMs(i)) : toMs;
      this.#exposure[i]! += units * (endMs - fromMs);
      fromMs = endMs;
    }
  }

  happened(elapsedMs: number, times = 1): void {
    this.#events[octaveOf(elapsedMs)]! += times;
    this.#total += times;
    if (this.#total <= eventsRemembered) return;
    this.#total /= 2;
    for (let i = 0; i < octaves; i++) {
      this.#events[i]! /= 2;
      this.#exposure[i]! /= 2;
    }
  }

  /** The mean over the octaves first … last; 0 where nothing was seen. */
  between(first: number, last: number): number {
    let events = 0;
    let exposure = 0;
    for (let i = first; i <= last; i++) {
      events += this.#events[i]!;
      exposure += this.#exposure[i]!;
    }
    return events > 0 && exposure > 0 ? events / exposure : 0;
  }
}

/** Where octave `i` ends: 1 µs · 2^i, by a shift: a power takes 30 times as long, and a quiet arrival asks for a dozen. */
export const octaveEndMs = (i: number): number => (1 << i) / 1000;

export const octaveOf = (elapsedMs: number): number =>
  elapsedMs < 0.001 ? 0 : Math.min(octaves - 1, 32 - Math.clz32(Math.min(elapsedMs, 1e6) * 1000));
