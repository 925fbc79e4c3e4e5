/** Number of refusals in a measurement: a single one is off by up to the weight of the refused request. */
const kept = 4;
/** Once measured, the pace grows with the square of the time. */
const growingMs = 30_000;
/** A refusal now and then is the price of growth: for a service that takes few requests it is slower, up to `slowest` times. */
const passesPerGrowth = 140;
const slowest = 3;
/** After this time without a refusal the limit must have been raised, and the pace doubles repeatedly. */
const steadyMs = 30_000;
const widenedMs = 15_000;
/**
 * If this many times the usual number of requests pass between two refusals, the refusals had another reason than the pace, which
 * then doubles, once for each further time. If that was wrong, the next measurement corrects it.
 */
const unusual = 1;
/**
 * If more than this share of the last eight or so requests were refused although the pace was kept, the service does not limit the
 * pace.
 */
const helpless = 0.75;
const helped = 0.3;
const refusedStep = 1 / 8;
/** Requests stay just below the measured pace, so that an error of measurement does not cause a refusal at once. */
const caution = 0.95;
/**
 * A measurement this much below the earlier ones shows a lowered limit, this much above a raised one; earlier ones then no longer
 * count.
 */
const tightened = 0.6;
const widened = 1.4;

/**
 * The pace, in weight per millisecond, of a service that reports nothing but 429. At a refusal the service's bucket is empty, so
 * between two refusals it has accepted exactly what flowed in. Without refusals the pace grows, slowly at first, to find a raised
 * limit.
 */
export class Pace {
  #perMs: number = Infinity;
  #changedAtMs: number = -Infinity;
  #accepted = 0;
  #passes = 0;
  #refusedRate = 0;
  /** The service refuses for another reason, so going slower does not help. */
  isHelpless = false;
  readonly #spans: { readonly accepted: number; readonly passes: number; readonly ms: number }[] = [];

  /** Infinity before the second refusal: the first says when the bucket is empty, not how fast it fills. */
  at(nowMs: number): number {
    if (this.#perMs === Infinity || this.isHelpless) return Infinity;
    const keptMs = (nowMs - this.#changedAtMs) / this.#slowness;
    const grown = 1 + (keptMs / growingMs) ** 2;
    const usual = Math.max(1, ...this.#spans.map(({ passes }) => passes));
    const faster = Math.max(0, this.#passes / usual - unusual);
    return this.#perMs * grown * doubled(Math.max(0, keptMs - steadyMs) / widenedMs + faster);
  }

  get #slowness(): number {
    const ms = this.#spans.reduce((sum, span) => sum + span.ms, 0);
    const passes = this.#spans.reduce((sum, span) => sum + span.passes, 0);
    return Math.min(slowest, Math.max(1, (passesPerGrowth * ms) / (passes * growingMs) || 1));
  }

  /** Called when the service reports plenty. */
  forget(): void {
    this.#perMs = Infinity;
    this.#spans.length = 0;
  }

  accepted(weight: number): void {
    this.#accepted += weight;
    this.#passes++;
    this.#refusedRate *= 1 - refusedStep;
    if (this.#refusedRate < helped) this.isHelpless = false;
  }

  /** What was accepted weighed so much more than it had been counted for. */
  corrected(difference: number): void {
    this.#accepted = Math.max(0, this.#accepted + difference);
  }

  /** `isOwing`: answers that had been accepted before the last refusal were counted after it, so that nothing was left. */
  refused(sentAtMs: number, nowMs: number, isOwing: boolean): void {
    // Sent before the last refusal was known, so it belongs to that one.
    if (sentAtMs <= this.#changedAtMs) return;
    if (isOwing && this.#passes === 0) return;
    this.#refusedRate += refusedStep * (1 - this.#refusedRate);
    if (this.#refusedRate > helpless) {
      this.isHelpless = true;
      this.forget();
    }
    const before = this.at(nowMs);
    const ms = nowMs - this.#changedAtMs;
    const accepted = this.#accepted;
    const passes = this.#passes;
    this.#accepted = this.#passes = 0;
    this.#changedAtMs = nowMs;
    if (accepted === 0 || ms === Infinity) return void (this.#perMs = before / 2);
    const last = accepted / ms;
    if (last < tightened * this.#perMs || last > widened * this.#perMs) this.#spans.length = 0;
    this.#spans.push({ accepted, passes, ms });
    if (this.#spans.length > kept) this.#spans.shift();
    const sum = this.#spans.reduce((a, b) => ({ accepted: a.accepted + b.accepted, passes: 0, ms: a.ms + b.ms }));
    this.#perMs = (caution * sum.accepted) / sum.ms;
  }
}

const doubled = (times: number): number => 2 ** Math.min(30, times);
