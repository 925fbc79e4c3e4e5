import type { AbortSignalLike } from "./globals.ts";

/** The callbacks of one signal: usually one, so a set is made for the second only. */
interface Heard {
  first: (() => void) | undefined;
  more: Set<() => void> | undefined;
  readonly listener: () => void;
}

/**
 * Listens to callers' signals, with one listener each however many chunks and waiting calls a signal concerns: from the
 * eleventh listener on one signal Node warns of a leak.
 */
export class AbortListeners {
  readonly #bySignal: Map<AbortSignalLike, Heard> = new Map();

  add(signal: AbortSignalLike, callback: () => void): void {
    const known = this.#bySignal.get(signal);
    if (known !== undefined) {
      (known.more ??= new Set()).add(callback);
      return;
    }
    const heard: Heard = { first: callback, more: undefined, listener: () => this.#aborted(signal, heard) };
    this.#bySignal.set(signal, heard);
    signal.addEventListener("abort", heard.listener, { once: true });
  }

  remove(signal: AbortSignalLike, callback: () => void): void {
    const heard = this.#bySignal.get(signal);
    if (heard === undefined) return;
    if (heard.first === callback) heard.first = undefined;
    else heard.more?.delete(callback);
    if (heard.first !== undefined || (heard.more !== undefined && heard.more.size > 0)) return;
    signal.removeEventListener("abort", heard.listener);
    this.#bySignal.delete(signal);
  }

  #aborted(signal: AbortSignalLike, heard: Heard): void {
    heard.first?.();
    // A callback may remove others, which are then not called.
    if (heard.more !== undefined) for (const callback of heard.more) callback();
    this.#bySignal.delete(signal);
  }
}
