/** Refusals that a measurement rests on: one alone is wrong by up to the weight of the request that was refused. */
const kept = 4;
/** Once measured it grows with the square of the time. */
const growingMs = 30_000;
/** After so long without a refusal it doubles again and again: the limit has been widened. */
const steadyMs = 30_000;
const widenedMs = 15_000;
/**
 * As many times the requests that usually pass between two refusals show that these had another reason than the pace: it doubles
 * with each further time. A measurement follows if that was wrong.
 */
const unusual = 1;
/** Of the last eight or so requests: where more were refused although the pace was kept, it is no pace that the service keeps to. */
const helpless = 0.75;
const helped = 0.3;
const refusedStep = 1 / 8;
/** Of the pace measured: just below it, so that an error of the measurement does not lead to a refusal at once. */
const caution = 0.95;
/** A measurement this much below the former ones shows a tightened limit, this much above a widened one: these no longer count. */
const tightened = 0.6;
const widened = 1.4;

/**
 * The pace, in weight a millisecond, that a service allows which says nothing but 429. Where a request is refused its bucket
 * is empty: between two refusals it has taken all that flowed in. Without refusals the pace grows, slowly at first, so that a
 * wider limit is found.
 */
export class Pace {
  #perMs: number = Infinity;
  /** The last refusal. */
  #changedAtMs: number = -Infinity;
  #accepted = 0;
  #passes = 0;
  #refusedRate = 0;
  /** The service refuses for another reason, so that to go slower is of no help. */
  isHelpless = false;
  readonly #spans: { readonly accepted: number; readonly passes: number; readonly ms: number }[] = [];

  /** Infinity before the second refusal: the first says when the bucket is empty, not how fast it is filled. */
  at(nowMs: number): number {
    if (this.#perMs === Infinity || this.isHelpless) return Infinity;
    const keptMs = nowMs - this.#changedAtMs;
    const grown = 1 + (keptMs / growingMs) ** 2;
    const usual = Math.max(1, ...this.#spans.map(({ passes }) => passes));
    const faster = Math.max(0, this.#passes / usual - unusual);
    return this.#perMs * grown * doubled(Math.max(0, keptMs - steadyMs) / widenedMs + faster);
  }

  /** The service says that there is plenty. */
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

  refused(sentAtMs: number, nowMs: number): void {
    // Sent before the last refusal was known: the same one.
    if (sentAtMs <= this.#changedAtMs) return;
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
