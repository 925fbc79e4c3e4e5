import type { TestContext } from "node:test";

const cleanUps = new WeakMap<TestContext, (() => unknown)[]>();

/**
 * Cleans up after a test, the last made first: a page is closed before the server that it looks at, and does not complain
 * of its end. (`t.after` goes in the order of making.) All are run; the first that throws fails the test.
 */
export function atEnd(t: TestContext, cleanUp: () => unknown): void {
  const known = cleanUps.get(t);
  if (known !== undefined) return void known.push(cleanUp);
  const all = [cleanUp];
  cleanUps.set(t, all);
  t.after(async () => {
    const failures: unknown[] = [];
    for (const one of all.reverse()) {
      try {
        await one();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
}
