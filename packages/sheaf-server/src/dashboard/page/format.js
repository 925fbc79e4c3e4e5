/** Three significant digits at most, thousands apart. */
export function number(/** @type {number} */ value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

export const count = (/** @type {number} */ value) => Math.round(value).toLocaleString("en");

/** Milliseconds in the unit that reads best. */
export function duration(/** @type {number} */ ms) {
  if (ms >= 10_000) return `${number(ms / 1000)} s`;
  if (ms >= 999.5) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 100) return `${ms.toFixed(0)} ms`;
  if (ms >= 1) return `${ms.toFixed(1)} ms`;
  return `${ms.toFixed(2)} ms`;
}

/** The same for the ticks of an axis, without superfluous digits. */
export const tickDuration = (/** @type {number} */ ms) =>
  ms >= 1000 ? `${ms / 1000} s` : `${Number(ms.toPrecision(3))} ms`;

export const percent = (/** @type {number} */ share) =>
  share > 0 && share < 0.01 ? "under 1 %" : `${Math.round(share * 100)} %`;

/** As exact as it takes to tell 0.98 from 1. */
export const times = (/** @type {number} */ factor) => `${factor.toFixed(factor >= 10 ? 0 : factor >= 2 ? 1 : 2)}×`;

export const plural = (
  /** @type {number} */ amount,
  /** @type {string} */ word,
  /** @type {string} */ words = `${word}s`,
) => `${count(amount)} ${Math.round(amount) === 1 ? word : words}`;

export function bytes(/** @type {number} */ amount) {
  return amount >= 2 ** 30 ? `${(amount / 2 ** 30).toFixed(2)} GiB` : `${(amount / 2 ** 20).toFixed(0)} MiB`;
}

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
