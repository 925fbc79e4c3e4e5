import { auto, createBatcher, greedy } from "sheaf";
import { virtualClock } from "sheaf/testing";
import { seededRandom } from "sheaf/internal/tuning";
import { drawing } from "./random.mjs";

/** When a verdict is asked for: milliseconds of virtual time, and a number of batches. */
export const asks = { "5 s": { atMs: 5_000 }, "30 s": { atMs: 30_000 }, "2 min": { atMs: 120_000 }, "200 batches": {} };

/** Fixed cost ÷ cost of an item. */
export const ratios = [0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50];

/** Costs that are not a straight line; nothing was tuned on them. */
export const shapes = {
  "steps of 8": (size) => 8 * Math.ceil(size / 8),
  "a part and steps of 4": (size) => 3 + 4 * Math.ceil(size / 4),
  "size^1.2": (size) => size ** 1.2,
  "5 + size^1.3": (size) => 5 + size ** 1.3,
  "padded to powers of two": (size) => 2 + 2 ** Math.ceil(Math.log2(size)),
  "flat to 12, then steep": (size) => 10 + 2 * Math.max(0, size - 12),
};

const mixedLengths = [
  [0.5, 0.7],
  [3, 0.3],
];
const meanLength = mixedLengths.reduce((sum, [length, share]) => sum + length * share, 0);

/** What disturbs the runs: a factor of the run time by number of the run and moment; or items of two lengths. */
export const troubles = {
  "noise 10 %": { noise: 0.1 },
  "noise 20 %": { noise: 0.2 },
  "noise 50 %": { noise: 0.5 },
  "fresh start and a burst": { noise: 0.1, burst: true, factor: (run) => 1 + 4 * Math.exp(-run / 6) },
  "three stalls at the start": { noise: 0.1, factor: (run) => (run >= 2 && run < 5 ? 60 : 1) },
  "a stall in fifty": { noise: 0.1, factor: (run) => (run % 50 === 30 ? 25 : 1) },
  "drift to three times": { noise: 0.1, factor: (_, atMs) => 1 + 2 * Math.min(1, atMs / 60_000) },
  "a step to 2.5 times": { noise: 0.1, factor: (_, atMs) => (atMs > 20_000 ? 2.5 : 1) },
  "two lengths, summed": { noise: 0.1, lengths: "sum" },
  "two lengths, padded": { noise: 0.1, lengths: "pad" },
};

/** Which sizes run: waves of given sizes through `greedy`, or callers through `auto`. */
export const traffics = {
  "1, 4, 16": { waves: (draw) => draw.of([1, 4, 16]) },
  "1, 8, 32": { waves: (draw) => draw.of([1, 8, 32]) },
  "few of many sizes": { waves: (draw) => Math.min(32, 1 + Math.floor(-Math.log(1 - draw.between(0, 1)) * 6)) },
  "quiet and busy spells": {
    waves: (draw, atMs) => (Math.floor(atMs / 5_000) % 2 === 0 ? 1 + draw.below(3) : 24 + draw.below(9)),
  },
  "never one alone": { waves: (draw) => draw.of([2, 8, 32]) },
  "callers at random": { callers: true },
};

/**
 * One batcher on a virtual clock. Gives, for each ask, the verdict and the true speed-up of the batches that it is about:
 * their items × the mean time of an item alone ÷ their mean times, without what disturbs all sizes alike.
 */
export async function judged({ ratio = 0, shape, trouble, traffic, seed }) {
  const { noise, factor = () => 1, lengths, burst } = troubles[trouble];
  const random = seededRandom(seed * 7919 + 13);
  const draw = drawing(random);
  const clock = virtualClock();
  const unitMs = 200 / ((shape ?? ((size) => ratio + size))(32) + 1);
  const sizes = [];
  const batcher = createBatcher(
    async (items) => {
      const run = sizes.length;
      sizes.push(items.length);
      const ms = unitMs * timeOf(items.length) * lognormal(random, noise) * factor(run, clock.now());
      await clock.sleep(ms);
      return items;
    },
    {
      clock,
      maxBatchSize: 32,
      concurrency: 1,
      maxQueueSize: 1e6,
      policy: "waves" in traffics[traffic] ? greedy() : auto(),
    },
  );
  function timeOf(size) {
    if (shape !== undefined) return shape(size);
    if (lengths === undefined) return ratio + size;
    let sum = 0;
    let most = 0;
    for (let item = 0; item < size; item++) {
      const length = draw.chance(mixedLengths[1][1]) ? mixedLengths[1][0] : mixedLengths[0][0];
      sum += length;
      most = Math.max(most, length);
    }
    return ratio + (lengths === "sum" ? sum : size * most);
  }
  const expected = (size) => {
    if (shape !== undefined) return shape(size);
    if (lengths === undefined) return ratio + size;
    if (lengths === "sum") return ratio + size * meanLength;
    const [[short, share], [long]] = mixedLengths;
    return ratio + size * (long + (short - long) * share ** size);
  };
  const answers = {};
  const ask = (name) => {
    // Those that the verdict is about: the first ones are left out.
    const recent = sizes.slice(16).slice(-512);
    const items = recent.reduce((sum, size) => sum + size, 0);
    const time = recent.reduce((sum, size) => sum + expected(size), 0);
    answers[name] = { ...batcher.stats().verdict, truth: (items * expected(1)) / time, batches: sizes.length };
  };
  const endMs = asks["2 min"].atMs;
  for (const [name, { atMs }] of Object.entries(asks)) if (atMs !== undefined) clock.at(atMs, () => ask(name));
  batcher.subscribe(() => {
    if (sizes.length === 200) ask("200 batches");
  });
  if (burst) clock.at(300, () => void batcher.many(Array.from({ length: 200 }, (_, item) => item)));
  const { waves } = traffics[traffic];
  if (waves !== undefined) {
    while (clock.now() < endMs) {
      await batcher.many(Array.from({ length: waves(draw, clock.now()) }, (_, item) => item));
      await clock.sleep(50);
    }
  } else {
    // Half of what full batches could serve, by independent callers.
    const perMs = 0.5 * (32 / (unitMs * expected(32)));
    while (clock.now() < endMs) {
      void batcher(0);
      await clock.sleep(-Math.log(1 - random()) / perMs);
    }
  }
  await clock.idle();
  return answers;
}

/**
 * The gain that a start measures, as the server's warm-up does: items one by one and in one run of 32, in turn, for 300 ms or three times, disturbed as
 * `trouble` says; and the truth of its sample. Runs take between 1 ms and 200 ms.
 */
export async function started({ ratio = 0, shape, trouble, seed }) {
  const { noise, factor = () => 1 } = troubles[trouble];
  const random = seededRandom(seed * 104_729 + 7);
  const cost = shape ?? ((size) => ratio + size);
  const unitMs = (1 + 199 * random() ** 2) / cost(32);
  const runs = [];
  let atMs = 0;
  const run = (size) => {
    const runMs = unitMs * cost(size) * lognormal(random, noise) * factor(runs.length, atMs);
    atMs += runMs;
    runs.push({ size, runMs });
    return runMs;
  };
  for (let round = 0, togetherMs = 0; round < 3 || (atMs <= 300 && round < 100); round++) {
    const roundAtMs = atMs;
    for (let items = 0; items === 0 || (items < 32 && atMs - roundAtMs < togetherMs); items++) run(1);
    togetherMs = run(32);
  }
  const batcher = createBatcher({
    slots: 1,
    ready: async () => runs,
    run: async (items) => items,
    close: async () => {},
  });
  await batcher.ready();
  const { start } = batcher.stats().verdict;
  await batcher.close();
  return start === null ? undefined : { ...start, truth: (32 * cost(1)) / cost(32) };
}

/** Every case: a trouble and a ratio, or a shape; its seeds take the traffics in turn. */
export const cases = [
  ...Object.keys(troubles).flatMap((trouble) => ratios.map((ratio) => ({ name: trouble, trouble, ratio }))),
  ...Object.entries(shapes).map(([name, shape]) => ({ name: `held out: ${name}`, trouble: "noise 20 %", shape })),
];

/** Plays the cases with some seeds, and counts by name of the case and by ask. */
export async function count(some, { firstSeed, seeds }) {
  const counts = {};
  const names = Object.keys(traffics);
  const wrongs = [];
  for (const { name, ...setting } of some) {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      const traffic = names[seed % names.length];
      const answers = await judged({ ...setting, traffic, seed });
      for (const [ask, answer] of Object.entries(answers)) {
        const entry = ((counts[name] ??= {})[ask] ??= {
          asked: 0,
          shown: 0,
          wrong: 0,
          owed: 0,
          given: 0,
          aloneless: 0,
          gave: 0,
        });
        const isShown = answer.speedup !== null && answer.verdict !== "measuring";
        entry.asked++;
        if (isShown) entry.shown++;
        if (isWrong(answer)) {
          entry.wrong++;
          wrongs.push({ name, ask, ...setting, traffic, seed, ...answer });
        }
        if (!isOwed(setting, traffic, ask, answer)) continue;
        // Batches that never held one item alone do not show what one takes: counted apart.
        const [owed, given] = traffic === "never one alone" ? ["aloneless", "gave"] : ["owed", "given"];
        entry[owed]++;
        if (isShown) entry[given]++;
      }
    }
  }
  return { counts, wrongs };
}

/** A verdict must be there after 200 batches of at least three sizes, where run times scatter by 20 % or less. */
function isOwed({ trouble }, traffic, ask, { truth, batchSize }) {
  const isClear = truth >= 1.5 || truth <= 1.05;
  const { noise, lengths } = troubles[trouble];
  return ask === "200 batches" && noise <= 0.2 && lengths === undefined && isClear && batchSize >= 1.5;
}

/** Whether the truth lies outside of a range by more than a tenth. */
export const isOutside = ({ low, high, truth }) => truth < low / 1.1 || truth > high * 1.1;

/** Whether a verdict contradicts the truth by more than a tenth. */
export function isWrong({ verdict, truth, ...range }) {
  if (verdict === "measuring" || verdict === "nothing-to-batch") return false;
  return isOutside({ ...range, truth }) || (verdict === "gains" ? truth < 1 : truth > 1.1 * 1.1);
}

function lognormal(random, deviation) {
  const variance = Math.log1p(deviation * deviation);
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.exp(Math.sqrt(variance) * normal - variance / 2);
}
