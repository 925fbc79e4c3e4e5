/** Silence after which a front end no longer counts. */
const latelyMs = 5000;
const mostCounted = 1000;

/** The front ends whose items came to a worker lately. */
export class SeenFrontEnds {
  readonly #atMs: Map<string, number> = new Map();

  saw(inbox: string, nowMs: number): void {
    if (this.#atMs.size < mostCounted || this.#atMs.has(inbox)) this.#atMs.set(inbox, nowMs);
  }

  count(nowMs: number): number {
    for (const [inbox, atMs] of this.#atMs) if (atMs < nowMs - latelyMs) this.#atMs.delete(inbox);
    return this.#atMs.size;
  }
}
