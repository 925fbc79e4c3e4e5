/** Refusals that a measurement rests on: one alone is wrong by up to the weight of the request that was refused. */
const kept = 4;
/** Once measured it grows with the square of the time. */
const growingMs = 30_000;
/** After so long without a refusal it doubles again and again: the limit has been widened. */
const steadyMs = 30_000;
const widenedMs = 15_000;
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
  readonly #spans: { readonly accepted: number; readonly ms: number }[] = [];

  /** Infinity before the second refusal: the first says when the bucket is empty, not how fast it is filled. */
  at(nowMs: number): number {
    if (this.#perMs === Infinity) return Infinity;
    const keptMs = nowMs - this.#changedAtMs;
    const grown = 1 + (keptMs / growingMs) ** 2;
    return this.#perMs * grown * doubled(Math.max(0, keptMs - steadyMs) / widenedMs);
  }

  /** The service says that there is plenty. */
  forget(): void {
    this.#perMs = Infinity;
    this.#spans.length = 0;
  }

  accepted(weight: number): void {
    this.#accepted += weight;
  }

  refused(sentAtMs: number, nowMs: number): void {
    // Sent before the last refusal was known: the same one.
    if (sentAtMs <= this.#changedAtMs) return;
    const before = this.at(nowMs);
    const ms = nowMs - this.#changedAtMs;
    const accepted = this.#accepted;
    this.#accepted = 0;
    this.#changedAtMs = nowMs;
    if (accepted === 0 || ms === Infinity) return void (this.#perMs = before / 2);
    const last = accepted / ms;
    if (last < tightened * this.#perMs || last > widened * this.#perMs) this.#spans.length = 0;
    this.#spans.push({ accepted, ms });
    if (this.#spans.length > kept) this.#spans.shift();
    const sum = this.#spans.reduce((a, b) => ({ accepted: a.accepted + b.accepted, ms: a.ms + b.ms }));
    this.#perMs = (caution * sum.accepted) / sum.ms;
  }
}

const doubled = (times: number): number => 2 ** Math.min(30, times);
