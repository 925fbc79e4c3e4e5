import type { AbortSignalLike } from "../runtime/runtime.ts";
import type { Queue } from "./queue.ts";
import { mayHold, type Account } from "./tenants.ts";
import type { Waiters } from "./waiters.ts";

/** Whether the batcher takes calls, and has room for one. */
export class Admission<In> {
  /** Those who wait for room: made when the first one does. */
  waiters: Waiters<In> | undefined;
  /** The error of new calls; set when the batcher takes no more. */
  refusal: { readonly error: unknown } | undefined;
  readonly #queue: Queue<In>;

  constructor(queue: Queue<In>) {
    this.#queue = queue;
  }

  /**
   * Checks a call of so many items when it is made, and again after a key function, which may have closed the batcher or
   * aborted the signal.
   * @throws why it may not even try.
   */
  checkOpen(items: number, signal: AbortSignalLike | undefined): void {
    if (this.refusal !== undefined) {
      this.#queue.tally.rejected += items;
      throw this.refusal.error;
    }
    if (signal?.aborted !== true) return;
    this.#queue.tally.aborted += items;
    throw signal.reason;
  }

  hasRoom(): boolean {
    return this.#queue.size < this.#queue.maxSize && (this.waiters === undefined || this.waiters.letsPass);
  }

  /** Whether the next item of this tenant has room; undefined without tenants, or where it is not known. */
  hasRoomFor(tenant: Account<In> | undefined): boolean {
    if (!this.hasRoom()) return false;
    return tenant === undefined || ((tenant.waiters === 0 || this.waiters!.isAdmitting) && this.hasShare(tenant));
  }

  /** Leaves room for a newcomer, however much the others send. */
  hasShare({ waiting }: Account<In>): boolean {
    return mayHold(waiting, this.#queue.maxSize - this.#queue.size);
  }
}
