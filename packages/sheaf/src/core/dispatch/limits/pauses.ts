/** Pauses that are remembered; of more only the latest count. */
const maxKept = 1024;

/** The pauses that a service has asked for. */
export class Pauses {
  /** End of the latest. */
  untilMs: number = -Infinity;
  /** In order, none touching the next. */
  readonly #pauses: { readonly fromMs: number; untilMs: number }[] = [];

  /** Pauses for a finite number of milliseconds > 0; anything else is ignored. */
  pause(nowMs: number, durationMs: unknown): void {
    if (typeof durationMs !== "number" || !Number.isFinite(durationMs) || durationMs <= 0) return;
    const untilMs = nowMs + durationMs;
    if (untilMs <= this.untilMs) return;
    const last = this.#pauses.at(-1);
    if (last !== undefined && nowMs <= last.untilMs) last.untilMs = untilMs;
    else this.#pauses.push({ fromMs: nowMs, untilMs });
    if (this.#pauses.length > maxKept) this.#pauses.shift();
    this.untilMs = untilMs;
  }

  /** Their length since then, with the rest of the one that is going on. */
  since(atMs: number): number {
    let sum = 0;
    for (let i = this.#pauses.length - 1; i >= 0 && this.#pauses[i]!.untilMs > atMs; i--)
      sum += this.#pauses[i]!.untilMs - Math.max(atMs, this.#pauses[i]!.fromMs);
    return sum;
  }

  /** How long all pauses together have lasted so far. */
  spentMs(nowMs: number): number {
    return this.since(-Infinity) - Math.max(0, this.untilMs - nowMs);
  }
}
