/** Parts of a period that are remembered: what was used in one leaves the window at the end of it. */
const partsOfPeriod = 256;

interface Part {
  readonly fromMs: number;
  untilMs: number;
  amount: number;
}

/** At most `limit` in any period of `perMs`, whenever it begins. In bounded memory: at worst it counts a 256th of the period too long. */
export class Window {
  readonly limit: number;
  readonly #perMs: number;
  readonly #parts: Part[] = [];
  #sum = 0;

  constructor(limit: number, perMs: number) {
    this.limit = limit;
    this.#perMs = perMs;
  }

  /** The amount that may go now. Negative where more was used than allowed. `share`: this process's part of the limit. */
  left(nowMs: number, share: number = 1): number {
    this.#leave(nowMs);
    return share * this.limit - this.#sum;
  }

  /** From when on `amount` may go; one that is more than the limit, once nothing else is in the window. */
  readyAtMs(nowMs: number, amount: number, share: number = 1): number {
    const most = share * this.limit;
    // A millionth is a rounding error.
    const missing = Math.min(most, amount) - this.left(nowMs, share) - 1e-6;
    let freed = 0;
    for (let i = 0; i < this.#parts.length && freed < missing; i++) {
      freed += this.#parts[i]!.amount;
      if (freed >= missing) return this.#parts[i]!.untilMs + this.#perMs;
    }
    return nowMs;
  }

  /** Counts what goes. A negative amount takes back what was counted last. */
  add(nowMs: number, amount: number): void {
    this.#leave(nowMs);
    if (amount < 0) return this.#takeBack(-amount);
    const last = this.#parts.at(-1);
    if (last !== undefined && nowMs - last.fromMs < this.#perMs / partsOfPeriod) {
      last.amount += amount;
      last.untilMs = Math.max(last.untilMs, nowMs);
    } else {
      this.#parts.push({ fromMs: nowMs, untilMs: nowMs, amount });
    }
    this.#sum += amount;
  }

  #takeBack(amount: number): void {
    for (let i = this.#parts.length - 1; i >= 0 && amount > 0; i--) {
      const part = this.#parts[i]!;
      const taken = Math.min(part.amount, amount);
      part.amount -= taken;
      this.#sum -= taken;
      amount -= taken;
    }
  }

  #leave(nowMs: number): void {
    let gone = 0;
    while (gone < this.#parts.length && this.#parts[gone]!.untilMs + this.#perMs <= nowMs)
      this.#sum -= this.#parts[gone++]!.amount;
    if (gone > 0) this.#parts.splice(0, gone);
    if (this.#parts.length === 0) this.#sum = 0;
  }
}
