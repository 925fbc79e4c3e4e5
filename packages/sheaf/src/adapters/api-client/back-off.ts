const firstMs = 500;
const longestMs = 8000;
/** Clients that failed at the same moment must not all come back at the same moment. */
const jitter = 0.25;

/** The wait after `failures` failures if the service names none: doubled each time, as openai's client does. */
export const backOffMs = (failures: number, random: number): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1)) * (1 - jitter * random);
