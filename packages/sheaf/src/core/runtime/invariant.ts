/** Our own bug, never the caller's: throws an error that names the expectation. */
export function invariant(condition: boolean, expectation: string): asserts condition {
  if (!condition) throw new Error(`Sheaf is broken: expected that ${expectation}. Please report this.`);
}
