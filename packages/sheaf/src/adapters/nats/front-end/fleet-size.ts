/** Time in which a worker that ended may restart. */
const latelyMs = 60_000;
const goneAfterMs = 5000;

/**
 * How many workers served side by side lately. A worker that was started in the place of one that had ended does not count
 * beside it.
 */
export class FleetSize {
  readonly #seen: Map<string, { readonly firstAtMs: number; lastAtMs: number }> = new Map();
  #most = 0;
  #mostAtMs = 0;

  heard(id: string, nowMs: number): void {
    const known = this.#seen.get(id);
    if (known === undefined) this.#seen.set(id, { firstAtMs: nowMs, lastAtMs: nowMs });
    else known.lastAtMs = nowMs;
    let newestAtMs = 0;
    for (const [other, { firstAtMs, lastAtMs }] of this.#seen) {
      if (lastAtMs < nowMs - goneAfterMs) this.#seen.delete(other);
      else newestAtMs = Math.max(newestAtMs, firstAtMs);
    }
    let together = 0;
    for (const { lastAtMs } of this.#seen.values()) if (lastAtMs >= newestAtMs) together++;
    if (together < this.#most && nowMs - this.#mostAtMs < latelyMs) return;
    this.#most = together;
    this.#mostAtMs = nowMs;
  }

  get lately(): number {
    return this.#most;
  }
}
