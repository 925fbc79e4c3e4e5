/** Parts of a period that are remembered: what was used in one leaves the window at the end of it. */
const partsOfPeriod = 256;
/** Less than this part of the limit is not worth a batch while larger ones wait. */
const crumb = 1 / 64;
/** Each pause that the service asked for makes the period this much longer, up to `longest`; 20 periods take it back. */
const longer = 0.02;
const longest = 0.1;
const takenBackPerPeriod = longer / 20;

interface Part {
  readonly fromMs: number;
  untilMs: number;
  amount: number;
}

/**
 * At most `limit` in any period of `perMs`, whenever it begins. In bounded memory: at worst it counts a 256th of the period too
 * long. A service counts by its own clock when requests reach it, so one that refuses gets a margin.
 */
export class Window {
  readonly limit: number;
  readonly #perMs: number;
  #margin = 0;
  #marginAtMs = -Infinity;
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
    const wanted = left < least ? Math.min(least, amount) : Math.min(share * this.limit, amount);
    // A millionth is a rounding error.
    const missing = wanted - left - 1e-6;
    let freed = 0;
    for (const part of this.#parts) {
      if (freed >= missing) break;
      freed += part.amount;
      if (freed >= missing) return part.untilMs + this.#keptMs(nowMs);
    }
    return nowMs;
  }

  /** The service asked for a pause although the limit was kept. */
  refused(nowMs: number): void {
    this.#margin = Math.min(longest, this.#marginNow(nowMs) + longer);
    this.#marginAtMs = nowMs;
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
    while (gone < this.#parts.length && this.#parts[gone]!.untilMs + keptMs <= nowMs)
      this.#sum -= this.#parts[gone++]!.amount;
    if (gone > 0) this.#parts.splice(0, gone);
    if (this.#parts.length === 0) this.#sum = 0;
  }
}
