/** What the behaviours of every runtime share: nothing but the language, its timers and its promises. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const numbers = (count) => Array.from({ length: count }, (_, index) => index);
export const codeOf = (promise) => promise.then(() => "no error", (error) => error.code ?? error.message); // prettier-ignore

export function equal(actual, expected) {
  const [left, right] = [actual, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`expected ${right}, got ${left}`);
}

/** Runs them one after another; returns what became of each, in order. */
export async function outcomesOf(behaviours) {
  const outcomes = [];
  for (const [behaviour, check] of Object.entries(behaviours)) {
    try {
      await check();
      outcomes.push({ behaviour, verdict: "ok" });
    } catch (error) {
      outcomes.push({ behaviour, verdict: "failed", why: error?.message ?? String(error) });
    }
  }
  return outcomes;
}
