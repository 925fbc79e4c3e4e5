interface Timer {
  readonly atMs: number;
  /** Timers due at one moment fire in the order they were set. */
  readonly order: number;
  callback: (() => void) | undefined;
}

const before = (a: Timer, b: Timer): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** Timers by moment, then by order of setting: a binary heap in which a cancelled timer stays until it comes up. */
export class TimerQueue {
  readonly #heap: Timer[] = [];
  #set = 0;
  #live = 0;

  /** Timers set and neither fired nor cancelled. */
  get size(): number {
    return this.#live;
  }

  set(atMs: number, callback: () => void): () => void {
    const timer: Timer = { atMs, order: this.#set++, callback };
    this.#live++;
    this.#push(timer);
    return () => {
      if (timer.callback === undefined) return;
      timer.callback = undefined;
      this.#live--;
    };
  }

  /** When the next timer is due; `Infinity` without one. */
  nextAtMs(): number {
    const heap = this.#heap;
    while (heap.length > 0 && heap[0]!.callback === undefined) this.#pop();
    return heap.length > 0 ? heap[0]!.atMs : Infinity;
  }

  /** Fires the next timer; call only after `nextAtMs` named a moment. */
  fire(): void {
    const timer = this.#pop();
    const { callback } = timer;
    timer.callback = undefined;
    this.#live--;
    callback!();
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let i = heap.length;
    heap.push(timer);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (before(heap[parent]!, timer)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = timer;
  }

  #pop(): Timer {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= length) break;
      if (child + 1 < length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return top;
  }
}
