import type { QueueView } from "../policy.ts";
import { EventRate, octaveEndMs, octaveOf } from "./event-rate.ts";
import {
  apartOverTogether,
  arrivalsToPay,
  clumpHoldShare,
  clumpPieceShares,
  fewReturning,
  lookAheadDivisor,
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
