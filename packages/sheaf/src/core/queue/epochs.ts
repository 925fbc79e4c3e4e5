import { Epoch } from "./epoch.ts";

/**
 * Epochs let flush and drain know when "everything until now" has settled, with one counter each: every call counts in
 * one epoch, and a flush or drain ends the current one. A count is read only while something waits for it.
 */
export class Epochs {
  current: Epoch = new Epoch();
  #sealed: Epoch[] = []; // in chronological order, unsettled ones only
  #order = 0;
  #waiters: { readonly epoch: Epoch; readonly andEarlier: boolean; readonly resolve: () => void }[] = [];

  /** Ends the current epoch: calls from now on count in a new one. */
  seal(): Epoch {
    const epoch = this.current;
    this.current = new Epoch();
    return this.#sealAs(epoch, "drain");
  }

  /** A sealed epoch for calls that wait now; `takeOver` moves them. */
  separate(): Epoch {
    return this.#sealAs(new Epoch(), "flush");
  }

  /** Moves `calls` calls from one epoch to a sealed one. */
  takeOver(from: Epoch, to: Epoch, calls: number): void {
    if (from === to || calls === 0) return;
    to.unsettled += calls;
    if (from.whenSettled !== undefined) {
      // Something waits for `from`: it stays unsettled until its successor has settled.
      if (to.heirOf.at(-1) !== from) {
        to.heirOf.push(from);
        from.unsettled += 1;
      }
    }
    from.unsettled -= calls;
  }

  /** Resolves when every call of a sealed epoch has settled; with `andEarlier`, those of older epochs too. */
  settlement(epoch: Epoch, andEarlier: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ epoch, andEarlier, resolve });
      if (epoch.unsettled === 0) this.#ended(epoch);
    });
  }

  #sealAs(epoch: Epoch, release: "flush" | "drain"): Epoch {
    epoch.release = release;
    epoch.order = ++this.#order;
    epoch.whenSettled = () => this.#ended(epoch);
    this.#sealed.push(epoch);
    return epoch;
  }

  #ended(first: Epoch): void {
    // A loop, not a recursion: a caller that flushes after every call makes a long chain of successors.
    const ended = [first];
    for (let epoch = ended.pop(); epoch !== undefined; epoch = ended.pop()) {
      for (const ancestor of epoch.heirOf.splice(0)) if (--ancestor.unsettled === 0) ended.push(ancestor);
    }
    this.#sealed = this.#sealed.filter(({ unsettled }) => unsettled > 0);
    const oldest = this.#sealed[0]?.order ?? Infinity;
    this.#waiters = this.#waiters.filter(({ epoch, andEarlier, resolve }) => {
      if (andEarlier ? oldest <= epoch.order : epoch.unsettled > 0) return true;
      resolve();
      return false;
    });
  }
}
