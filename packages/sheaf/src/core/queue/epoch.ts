/** The calls that a flush or drain waits for together. */
export class Epoch {
  /** Calls of this epoch that have not settled, and epochs that took some of its calls over. */
  unsettled = 0;
  /** Its waiting items go without further holding, and this is the reason of their batches. */
  release: "flush" | "drain" | undefined;
  /** Set when the epoch is sealed: called when `unsettled` reaches 0. */
  whenSettled: (() => void) | undefined;
  /** Older sealed epochs whose calls this one took over; each counts this epoch once. */
  readonly heirOf: Epoch[] = [];
  order = 0;

  settled(calls: number): void {
    this.unsettled -= calls;
    if (this.unsettled === 0 && this.whenSettled !== undefined) this.whenSettled();
  }
}
