declare global {
  // Merges with the runtime's own declaration and gives the name a meaning where a runtime's types are absent.
  interface AbortSignal {}
}

/**
 * Marks the signal of a consumer's calls: its abort withdraws waiting calls and lets running calls finish. Registered for the
 * whole process: a program may load this package by `import` here and by `require` there.
 */
export const consumerOf: unique symbol = Symbol.for("sheaf.consumerOf");

/** What `consume` wants to know of the order keys of its calls. */
export interface ConsumerView {
  /**
   * Keys of which a call failed, with its error and its place in the queue, Infinity for one that did not enter: until a key is
   * deleted, no later call of it runs.
   */
  readonly stopped: Map<unknown, { readonly error: unknown; readonly place: number }>;
  /** Whether later calls of a key stay behind one that failed with this error. */
  stops(error: unknown): boolean;
  /** What they are rejected with. */
  behind(error: unknown): Error;
}

/** The part of an AbortSignal that the core uses. */
export interface AbortSignalLike {
  readonly [consumerOf]?: ConsumerView;
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

declare const AbortController: new () => { readonly signal: AbortSignal; abort(reason?: unknown): void };

export const newAbortController = (): { readonly signal: AbortSignal; abort(reason?: unknown): void } =>
  new AbortController();
