import { virtualClock } from "../../packages/sheaf/dist/testing/index.js";
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

/**
 * The reference, without the batcher: one queue that takes the newest item first while the oldest has waited for more than
 * five full runs, whether it sees callers leave or not. It shows what needs no deadline.
 */
export async function rideReference(storm) {
  const { fixedMs, perItemMs, slots, maxBatchSize, capacityPerS } = storm;
  const limitMs = 5 * (fixedMs + perItemMs * maxBatchSize);
  const queue = [];
  let free = slots;
  let clock;
  const dispatch = () => {
    while (free > 0 && queue.length > 0) {
      const size = Math.min(maxBatchSize, queue.length);
      const newest = clock.now() - queue[0].atMs > limitMs;
      const batch = newest ? queue.splice(-size) : queue.splice(0, size);
      free--;
      clock.after(fixedMs + perItemMs * size, () => {
        free++;
        for (const { resolve } of batch) resolve();
        dispatch();
      });
    }
  };
  const goodput = await clientsOf(storm, (virtual) => {
    clock = virtual;
    return (signal) =>
      new Promise((resolve, reject) => {
        if (queue.length >= 10_000) return reject(new Error("full"));
        const entry = { atMs: clock.now(), resolve };
        queue.push(entry);
        signal?.addEventListener("abort", () => {
          const at = queue.indexOf(entry);
          if (at >= 0) queue.splice(at, 1);
        });
        clock.after(0, dispatch);
      });
  });
  return outcomeOf(goodput, capacityPerS);
}

/** Clients as those of `simulate({ retries })`, that call another service. */
async function clientsOf(storm, serviceOf) {
  const { retries, seed } = storm;
  const { patienceMs } = retries;
  const clock = virtualClock();
  const call = serviceOf(clock);
  const random = seededRandom(seed);
  const { ratePerS } = arrivalsOf(storm);
  const endMs = calmMs + surgeMs + afterMs;
  const seconds = Array.from({ length: endMs / 1000 + 30 }, () => ({ begun: 0, answered: 0 }));
  const at = (ms) => seconds[Math.min(seconds.length - 1, Math.floor(ms / 1000))];
  let attempts = 0;
  let operations = 0;
  const operate = async () => {
    operations++;
    at(clock.now()).begun++;
    for (let attempt = 1; attempt <= 3; attempt++) {
      attempts++;
      const controller = new AbortController();
      const isAnswered = await new Promise((resolve) => {
        const leave = clock.after(patienceMs, () => {
          resolve(false);
          if (retries.seen) controller.abort();
        });
        call(controller.signal).then(
          () => (leave(), resolve(true)),
          () => (leave(), resolve(false)),
        );
      });
      if (isAnswered) return void at(clock.now()).answered++;
      await clock.sleep(500 * 2 ** (attempt - 1) * (1 - 0.25 * random()));
    }
  };
  const next = () => {
    const nowMs = clock.now();
    const isSurge = nowMs >= calmMs && nowMs < calmMs + surgeMs;
    const gapMs = (-Math.log(1 - random()) * 1000) / (ratePerS * (isSurge ? surge : 1));
    if (nowMs + gapMs < endMs) clock.after(gapMs, () => (void operate(), next()));
  };
  next();
  await clock.idle();
  const shares = seconds.map(({ begun, answered }) => answered / begun);
  const before = shares.slice(0, calmMs / 1000).reduce((sum, share) => sum + share, 0) / (calmMs / 1000);
  const first = (calmMs + surgeMs) / 1000;
  let back = first;
  while (back + 3 <= endMs / 1000 && shares.slice(back, back + 3).some((share) => share < 0.95 * before)) back++;
  return {
    attemptsPerOperation: attempts / operations,
    begunPerS: seconds.map(({ begun }) => begun),
    answeredPerS: seconds.map(({ answered }) => answered),
    recoveryMs: back + 3 > endMs / 1000 ? Infinity : 1000 * (back - first),
  };
}
