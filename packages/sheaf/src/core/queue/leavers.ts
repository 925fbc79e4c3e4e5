/** Callers who left before their items ran: of a batcher, or of one of its tenants. */
export class Leavers {
  count = 0;
  lastAtMs: number = -Infinity;
  /** How long the last of them had waited, the latest counting most. */
  afterMs = 0;

  left(atMs: number, waitedMs: number): void {
    this.count++;
    this.lastAtMs = atMs;
    this.afterMs += (waitedMs - this.afterMs) / Math.min(this.count, 32);
  }
}
