/** The real clock, which can jump ahead: what falls due in the jump fires soon after, as after a sleep. */
export class JumpingClock {
  #aheadMs = 0;
  #pending = new Set();

  now = () => performance.now() + this.#aheadMs;

  after = (delayMs, callback) => {
    if (delayMs <= 0) {
      const immediate = setImmediate(() => callback());
      return () => clearImmediate(immediate);
    }
    const timer = { atMs: this.now() + delayMs, callback, handle: undefined };
    this.#pending.add(timer);
    this.#set(timer);
    return () => {
      this.#pending.delete(timer);
      clearTimeout(timer.handle);
    };
  };

  jump(ms) {
    this.#aheadMs += ms;
    for (const timer of this.#pending) {
      clearTimeout(timer.handle);
      this.#set(timer);
    }
  }

  #set(timer) {
    const delayMs = Math.min(2 ** 31 - 1, Math.max(1, timer.atMs - this.now()));
    timer.handle = setTimeout(() => {
      this.#pending.delete(timer);
      timer.callback();
    }, delayMs);
  }
}
