/** From 0 in at most five even steps to the first one that reaches the largest share. */
export function shareSteps(/** @type {number} */ largest) {
  const most = Math.max(0.1, largest - 1e-9);
  const step = [0.02, 0.05, 0.1, 0.2].find((one) => most <= 5 * one) ?? 0.25;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

/** At most about ten labels, the first and the last among them. */
export function thinned(/** @type {string[]} */ labels) {
  const step = Math.ceil(labels.length / 9);
  return labels.map((label, index) =>
    index === 0 || index === labels.length - 1 || ((index + 1) % step === 0 && labels.length - index > step)
      ? label
      : "",
  );
}
