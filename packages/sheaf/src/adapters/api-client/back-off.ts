const firstMs = 500;
const longestMs = 8000;
/** Spreads the retries of clients that failed at the same moment. */
const jitter = 0.25;

/** The wait after `failures` failures if the service names none; it doubles each time, as in openai's client. */
export const backOffMs = (failures: number, random: number): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1)) * (1 - jitter * random);
