import { checkSpan } from "../shared/checks.ts";
import { ArrivalRate, EventRate, octaveEndMs, octaveOf } from "./arrival-rate.ts";
import { nextSize, type CostModel } from "./cost-model.ts";
import { isWorthPacing, pacedSize } from "./pacing.ts";
import type { BatchRecord, Decision, Policy, QueueView } from "./policy.ts";

/** @see auto */
export interface AutoOptions {
  /**
   * Arrival → result, in milliseconds. Given, auto holds as long as the budget allows and sends all that waits: the
   * fewest runs within the budget. Default none: the lowest latency.
   */
  readonly latencyBudgetMs?: number | undefined;
}

/**
 * The default policy: dispatches at once, as `greedy` does, except where what it has measured says that something else
 * is faster. Nothing to tune. Four rules, each a closed form of the learned cost s(n) and arrival rates:
 * - *size*: of n waiting items send the k that drains them with the lowest mean latency;
 * - *pacing* (several slots, and a cost mostly fixed): a few items wait for their slot's share of a run, so that idle
 *   slots do not grab crumbs;
 * - *linger*: wait for a clump (at most s(0)/4) or for callers just answered (at most s(0)/2), while they come fast
 *   enough to pay for it;
 * - *budget* (only with `latencyBudgetMs`): hold as long as the budget allows.
 */
export function auto({ latencyBudgetMs }: AutoOptions = {}): Policy {
  if (latencyBudgetMs !== undefined) checkSpan("latencyBudgetMs", latencyBudgetMs);
  return new Auto(latencyBudgetMs);
}

class Auto implements Policy {
  readonly name = "auto";

  readonly #latencyBudgetMs: number | undefined;
  readonly #arrivals = new ArrivalRate();
  // By the time since the last arrival: the next arrival. High early on where arrivals come in clumps.
  readonly #gaps = new EventRate();
  // By the time since the last batch ended: an arrival, for each caller answered and not yet back.
  readonly #returns = new EventRate();
  #lastDoneAtMs = -Infinity;
  #missing = 0;
  #exposedToMs = 0;
  #meanBatch = 1;
  // The most items at once, slowly forgotten: with a slot's share of them here, nobody else is worth waiting for.
  #crowd = 1;
  #lastPaced = { batches: -Infinity, perMs: 0, slots: 0, maxBatchSize: 0, size: 1, holds: false };
  #held = false;
  #avoided = 0;
  #untried = 0;

  constructor(latencyBudgetMs: number | undefined) {
    this.#latencyBudgetMs = latencyBudgetMs;
  }

  arrived({ nowMs, arrivals, outstanding }: QueueView): void {
    const known = this.#arrivals.count > 0;
    const gapMs = this.#arrivals.arrived(nowMs, arrivals);
    if (known && gapMs > 0.001) {
      this.#gaps.expose(0, gapMs, 1);
      this.#gaps.happened(gapMs);
    }
    if (this.#missing > 0) {
      this.#exposeMissing(nowMs);
      const back = Math.min(arrivals, this.#missing);
      this.#returns.happened(nowMs - this.#lastDoneAtMs, back);
      this.#missing -= back;
    }
    const fade = Math.min(1, 0.002 * arrivals);
    this.#crowd = Math.max(outstanding, this.#crowd + fade * (outstanding - this.#crowd));
  }

  observe({ size }: BatchRecord, nowMs: number, cost: CostModel): void {
    this.#exposeMissing(nowMs);
    this.#lastDoneAtMs = nowMs;
    this.#missing = size;
    this.#exposedToMs = 0;
    this.#meanBatch += 0.03 * (size - this.#meanBatch);
    this.#arrivals.spanAtLeast(2 * cost.line(this.#meanBatch));
  }

  decide(view: QueueView): Decision {
    const untilMs = this.#holdUntil(view);
    if (untilMs > view.nowMs) {
      this.#held = true;
      return { waitUntilMs: untilMs };
    }
    const run = this.#batchSize(view);
    const reason = this.#held && run < view.maxBatchSize ? "hold" : undefined;
    this.#held = false;
    return { run, reason };
  }

  #holdUntil(view: QueueView): number {
    const { nowMs, waiting, oldestAtMs, maxBatchSize, maxWaitMs, cost } = view;
    if (waiting >= maxBatchSize || cost.batches === 0) return nowMs;
    let untilMs = Math.max(this.#pacedUntil(view), this.#lingerUntil(view));
    if (this.#latencyBudgetMs !== undefined && cost.batches >= 4) {
      const runMs = cost.at(waiting) * (1.02 + 3 * cost.noise);
      untilMs = Math.max(untilMs, oldestAtMs + this.#latencyBudgetMs - runMs);
    }
    return Math.min(untilMs, oldestAtMs + maxWaitMs);
  }

  // Idle slots would grab crumbs, and be busy with them when the next items come.
  #pacedUntil(view: QueueView): number {
    const { nowMs, waiting, oldestAtMs, slots, cost } = view;
    if (waiting >= this.#crowd / slots - 0.01) return nowMs;
    const enough = this.#paced(view);
    if (!this.#lastPaced.holds) return nowMs;
    // What is nearly enough is enough: the rate is known to a fifth or so, and a hold for a third of an item never pays.
    return waiting < enough - 0.3 ? oldestAtMs + cost.line(enough) / (0.9 * slots) : nowMs;
  }

  // Asked for at every decision, computed at every eighth batch or when the arrival rate has moved.
  #paced({ nowMs, slots, maxBatchSize, cost }: QueueView): number {
    // With few slots, or little to share, a batch is soon worth more than the slots it leaves free.
    if (slots === 1 || cost.fixedMs * slots <= 8 * cost.perItemMs) return 1;
    const perMs = this.#arrivals.perMs(nowMs);
    const { batches } = cost;
    const last = this.#lastPaced;
    const fresh = batches - last.batches < (batches < 64 ? 1 : 8) && Math.abs(perMs - last.perMs) <= 0.05 * last.perMs;
    if (!fresh || last.maxBatchSize !== maxBatchSize || last.slots !== slots) {
      const size = pacedSize(cost, perMs, slots, maxBatchSize);
      const holds = isWorthPacing(cost, size);
      this.#lastPaced = { batches, perMs, slots, maxBatchSize, size, holds };
    }
    return this.#lastPaced.size;
  }

  // An arrival that joins the batch saves s(0) / W of slot time, and the n items that wait pay for the hold.
  #lingerUntil({ nowMs, waiting, oldestAtMs, slots, cost }: QueueView): number {
    const { fixedMs } = cost;
    const sinceMs = Math.max(oldestAtMs, this.#lastDoneAtMs);
    if (nowMs >= sinceMs + fixedMs / 2) return nowMs;
    const payingPerMs = (2 * waiting * slots) / fixedMs;
    const share = this.#crowd / slots - 0.01;
    const least = octaveOf(fixedMs / 50); // a shorter look ahead is not worth a timer
    let untilMs = nowMs;
    let returningPerMs = 0;
    if (this.#missing > 0) {
      const first = octaveOf(nowMs - this.#lastDoneAtMs + roundingMs);
      const last = Math.max(first, least);
      returningPerMs = this.#missing * this.#returns.between(first, last);
      // Left behind, a caller who comes back waits for a whole run: worth waiting for longer than the rest of a clump. Not
      // where one run instead of two saves less than a sixth: the few who come late would lose more than the rest wins.
      const togetherMs = cost.at(waiting + this.#missing);
      const worthIt = cost.at(waiting) + cost.at(this.#missing) > 1.2 * togetherMs;
      if (worthIt && returningPerMs > payingPerMs && waiting < share) {
        untilMs = Math.min(this.#lastDoneAtMs + octaveEndMs(last), sinceMs + fixedMs / 2);
      }
    }
    const first = octaveOf(nowMs - this.#arrivals.lastAtMs + roundingMs);
    const last = Math.max(first, least);
    const arrivingPerMs = this.#gaps.between(first, last);
    // A clump that meets idle slots may be cut in fewer pieces than slots, to leave some for the next clump. Callers who
    // come back are all there are: a share of them is enough.
    const enough = slots > 1 && returningPerMs < 0.3 * arrivingPerMs ? 2 * share : share;
    if (arrivingPerMs > payingPerMs && waiting < enough) {
      untilMs = Math.max(untilMs, Math.min(this.#arrivals.lastAtMs + octaveEndMs(last), sinceMs + fixedMs / 4));
    }
    return untilMs;
  }

  // The mean latency of draining n items in runs of k, with what comes meanwhile: s(k) (1 + 2n / (k W (1 − busy))).
  #batchSize(view: QueueView): number {
    const { nowMs, waiting, slots, maxBatchSize, cost } = view;
    const most = Math.min(waiting, maxBatchSize);
    if (most < 2 || cost.batches < 4 || this.#latencyBudgetMs !== undefined) return most;
    const perItemMs = Number.isFinite(maxBatchSize) ? cost.at(maxBatchSize) / maxBatchSize : cost.perItemMs;
    const busy = Math.min(0.9, (this.#arrivals.perMs(nowMs) * perItemMs) / slots);
    const ahead = (2 * waiting) / (slots * (1 - busy));
    let best = most;
    // Where run times scatter, a small gain may be an error of the estimate, and too small batches cost throughput.
    let lowest = (cost.at(most) * (1 + ahead / most)) / (1 + 0.3 * cost.noise);
    // Smaller than paced, batches would use up the slots that the next ones need.
    const least = Math.floor(this.#paced(view));
    for (let size = least; size < most; size = nextSize(size)) {
      const latency = cost.at(size) * (1 + ahead / size);
      if (latency < lowest) {
        lowest = latency;
        best = size;
      }
    }
    if (best === most) return best;
    // A size avoided after a bad look would stay unknown for ever: under a backlog it gets more, the more so the more run
    // times scatter.
    if (most === maxBatchSize && cost.seen(most) < 0.5 + 12 * cost.noise && ++this.#avoided % 16 === 0) return most;
    // So would one never tried because the line promises little.
    const next = nextSize(best);
    return next < most && cost.seen(next) < 0.3 && ++this.#untried % 16 === 0 ? next : best;
  }

  #exposeMissing(nowMs: number): void {
    const elapsedMs = nowMs - this.#lastDoneAtMs;
    if (this.#missing === 0 || elapsedMs <= this.#exposedToMs) return;
    this.#returns.expose(this.#exposedToMs, elapsedMs, this.#missing);
    this.#exposedToMs = elapsedMs;
  }
}

// At the end of an octave the sum of a moment and a span falls short of it by rounding: without this the hold would end
// there, as if nobody were expected any more.
const roundingMs = 0.0005;
