import { simulate } from "../../packages/sheaf/dist/tuning/index.js";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";

/** Four seconds of calm, ten at three times that, seventeen of calm again. */
const calmMs = 4000;
const surgeMs = 10_000;
const afterMs = 17_000;
const surge = 3;

/**
 * `count` storms drawn at random: what a run costs, batch size and slots, utilisation before, how long clients wait for an
 * answer, whether the batcher sees them leave, and whether they obey Retry-After.
 */
export function drawnStorms(seed, count) {
  const random = seededRandom(seed);
  const pick = (choices) => choices[Math.floor(random() * choices.length)];
  const between = (low, high) => low * (high / low) ** random();
  const storms = [];
  while (storms.length < count) {
    const fixedMs = between(5, 60);
    const perItemMs = fixedMs / between(3, 100);
    const slots = pick([1, 1, 2, 4]);
    const maxBatchSize = pick([1, 4, 8, 16, 32, 32, 64]);
    const utilisation = pick([0.7, 0.85, 0.95]);
    const patienceMs = random() < 0.5 ? 1000 : Math.round(between(1500, 3000));
    const seen = random() < 0.5;
    const obeyRetryAfter = random() < 0.5;
    const capacityPerS = (1000 * slots * maxBatchSize) / (fixedMs + perItemMs * maxBatchSize);
    // Larger ones take longer to simulate and show nothing else; in a longer run than callers wait nobody can be served.
    if (capacityPerS > 1500 || fixedMs + perItemMs * maxBatchSize > 400) continue;
    const retries = { patienceMs, seen, obeyRetryAfter };
    storms.push({
      fixedMs,
      perItemMs,
      slots,
      maxBatchSize,
      utilisation,
      capacityPerS,
      retries,
      seed: seed + storms.length,
    });
  }
  return storms;
}

const arrivalsOf = ({ utilisation, capacityPerS }) => ({
  pattern: "surge",
  ratePerS: utilisation * capacityPerS,
  factor: surge,
  atMs: calmMs,
  forMs: surgeMs,
});

/** A storm on the real batcher; `options` are those of `createBatcher`. */
export async function ride(storm, options = {}) {
  const { fixedMs, perItemMs, slots, maxBatchSize, retries, seed, capacityPerS } = storm;
  const arrivals = arrivalsOf(storm);
  const { goodput } = await simulate({
    cost: { fixedMs, perItemMs },
    concurrency: slots,
    maxBatchSize,
    ...options,
    arrivals,
    retries,
    seed,
    warmUp: 0,
    items: Math.round((arrivals.ratePerS * (calmMs + surge * surgeMs + afterMs)) / 1000),
  });
  return outcomeOf(goodput, capacityPerS);
}

/** What a storm showed: seconds until the goodput is back, goodput during it ÷ capacity, attempts an operation. */
function outcomeOf(goodput, capacityPerS) {
  const whole = goodput.answeredPerS.slice(calmMs / 1000 + 1, (calmMs + surgeMs) / 1000 - 1);
  return {
    backS: goodput.recoveryMs / 1000,
    during: whole.reduce((sum, n) => sum + n, 0) / whole.length / capacityPerS,
    attempts: goodput.attemptsPerOperation,
    goodput,
  };
}
