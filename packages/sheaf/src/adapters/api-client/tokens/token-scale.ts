import { textKindOf, textKinds } from "./text-kind.ts";

/** How far one request moves the ratios; the first few of a kind move them farther. */
const step = 0.3;
/** However odd a count is. */
const least = 0.05;
const most = 20;

/**
 * Estimates of tokens, scaled by the API's counts: a ratio for each kind of text, moved by each request's count
 * (normalised least mean squares, Widrow and Hoff 1960), so that mixed requests teach too.
 */
export class TokenScale {
  readonly #ratios: number[] = new Array<number>(textKinds).fill(1);
  readonly #lessons: number[] = new Array<number>(textKinds).fill(0);

  /** Of a text whose tokens were estimated. */
  weigh(input: unknown, estimate: number): number {
    const ratio = this.#ratios[textKindOf(input)]!;
    return ratio === 1 ? estimate : Math.ceil(estimate * ratio);
  }

  /** Records that a request with these inputs had `tokens` tokens. */
  learn(inputs: readonly unknown[], estimates: readonly number[], tokens: number): void {
    if (!(tokens > 0 && tokens < Infinity)) return;
    const sums = new Array<number>(textKinds).fill(0);
    for (const [i, input] of inputs.entries()) sums[textKindOf(input)]! += estimates[i]!;
    const expected = sums.reduce((sum, estimate, kind) => sum + estimate * this.#ratios[kind]!, 0);
    const squares = sums.reduce((sum, estimate) => sum + estimate * estimate, 0);
    if (squares === 0) return;
    for (const [kind, estimate] of sums.entries()) {
      if (estimate === 0) continue;
      const moving = Math.max(step, 1 / ++this.#lessons[kind]!);
      const moved = this.#ratios[kind]! + (moving * (tokens - expected) * estimate) / squares;
      this.#ratios[kind] = Math.min(most, Math.max(least, moved));
    }
  }
}
