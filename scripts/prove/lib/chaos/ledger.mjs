import { afterRunning } from "./standstill.mjs";

/**
 * What was sent and what came of it, kept by the sender: every request must have one outcome, and one that has a
 * cause. An outcome is a word; those in `broken` are broken promises.
 */
export class Ledger {
  sent = 0;
  /** Sent, and neither ended nor hung. */
  open = 0;
  answered = 0;
  /** Ended without an answer although nothing was killed and no client hung up. */
  lost = 0;
  /** A second answer to the same request. */
  twice = 0;
  /** No end within the longest time that anything may take. */
  hung = 0;
  /** Another's result, a wrong value, or an error that nothing had caused. */
  wrong = 0;
  outcomes = {};
  examples = [];

  /** A request leaves; call what it returns exactly once, with its outcome. */
  send(name, hungAfterMs) {
    this.sent++;
    this.open++;
    let isOpen = true;
    const cancel = afterRunning(hungAfterMs, () => {
      isOpen = false;
      this.open--;
      this.#broken("hung", name, `no end within ${hungAfterMs} ms`);
    });
    return (outcome, detail = "") => {
      if (!isOpen) return this.#broken("twice", name, `${outcome} ${detail}`);
      isOpen = false;
      this.open--;
      cancel();
      if (outcome === "lost" || outcome === "wrong") return this.#broken(outcome, name, detail);
      this.answered++;
      this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    };
  }

  /** An answer without a request. */
  unasked(name, detail) {
    this.#broken("twice", name, detail);
  }

  /** What came to light only after the answer: `what` is "lost", "twice" or "wrong". */
  found(what, name, detail) {
    this.#broken(what, name, detail);
  }

  get isKept() {
    return this.lost + this.twice + this.hung + this.wrong === 0;
  }

  #broken(what, name, detail) {
    this[what]++;
    if (this.examples.length < 20) this.examples.push(`${what}: ${name}: ${detail}`);
  }
}
