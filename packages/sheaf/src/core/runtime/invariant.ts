/** Our own bug, never the caller's: throws with what was expected. */
export function invariant(condition: boolean, expectation: string): asserts condition {
  if (!condition) throw new Error(`Sheaf is broken: expected that ${expectation}. Please report this.`);
}
