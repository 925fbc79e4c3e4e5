declare const console: { warn(message: string, ...more: unknown[]): void };

export const warn = (message: string, ...more: unknown[]): void => console.warn(message, ...more);

/** A `warn` that prints its first message and no other. */
export function warnOnce(): typeof warn {
  let hasWarned = false;
  return (...words) => {
    if (!hasWarned) warn(...words);
    hasWarned = true;
  };
}

/** Our own bug, never the caller's: throws an error that names the expectation. */
export function invariant(condition: boolean, expectation: string): asserts condition {
  if (!condition) throw new Error(`Bug in Sheaf: expected that ${expectation}. Please report it.`);
}
