/** Does one step of a release and says how long it took. */
export function step(name, work) {
  const startedAtMs = performance.now();
  const result = work();
  console.log(`✔ ${name} (${((performance.now() - startedAtMs) / 1000).toFixed(1)} s)`);
  return result;
}
