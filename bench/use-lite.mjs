// `npm run bench -- use-lite`: what batching gains on the built-in models, one thread; use-lite packed against padded.
import {
  loadUseLite,
  tokenizeTexts,
  embedTokens,
} from "../packages/sheaf-server/dist/runners/use-lite/use-lite-worker.js";
import { loadMlp, runMlp } from "../packages/sheaf-server/dist/runners/mlp-worker.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { machine, median, table } from "./lib/machine.mjs";

const sizes = [1, 2, 4, 8, 16, 32, 64];
const rounds = 7;
const textCount = 64;

const random = seededRandom(1);
const vocabulary =
  "the a people time way world life work number night day water room mother area money story fact".split(" ");
/** `textCount` texts whose token counts are spread evenly over the range. */
function textsOf(model, fewest, most) {
  return Array.from({ length: textCount }, (_, i) => {
    const wanted = fewest + Math.floor(((i * 37) % textCount) * ((most - fewest + 1) / textCount));
    let text = "";
    do text = `${text} ${vocabulary[Math.floor(random() * vocabulary.length)]}`.trim();
    while (model.tokenizer.encode(text).length < wanted);
    return text;
  });
}

/**
 * Median milliseconds to work through all the items in batches of each size, for each of the runs; sizes and runs
 * alternate in every round. Processor time, not the clock's: with one thread they are the same on an idle machine, and
 * on a shared one only the first is the model's.
 */
async function measure(runs, items) {
  const times = runs.map(() => new Map(sizes.map((size) => [size, []])));
  for (let round = -1; round < rounds; round++) {
    for (const size of sizes) {
      for (const [i, run] of runs.entries()) {
        const start = process.cpuUsage();
        for (let at = 0; at < items.length; at += size) await run(items.slice(at, at + size));
        const { user, system } = process.cpuUsage(start);
        if (round >= 0) times[i].get(size).push((user + system) / 1000);
      }
    }
  }
  return times.map((ofRun) => sizes.map((size) => median(ofRun.get(size))));
}

const gainRow = (name, times) => [name, ...times.map((ms) => `${(times[0] / ms).toFixed(2)}×`), best(times)];
const best = (times) => `${Math.round((textCount * 1000) / Math.min(...times))}/s`;

const rows = [["model, items", ...sizes.map((size) => `batch ${size}`), "most"]];
const packed = await loadUseLite({ layout: "packed" });
const padded = await loadUseLite({ layout: "padded" });
const comparison = [
  ["use-lite, tokens a text", "padded 1", "padded 32", "packed 1", "packed 32", "packed ÷ padded at 32"],
];
for (const [fewest, most] of [
  [3, 8],
  [4, 24],
  [8, 64],
]) {
  const texts = textsOf(packed, fewest, most);
  const run = (model) => async (batch) => embedTokens(tokenizeTexts(batch, model), model);
  const [packedMs, paddedMs] = await measure([run(packed), run(padded)], texts);
  rows.push(gainRow(`use-lite packed, ${fewest}–${most} tokens`, packedMs));
  rows.push(gainRow(`use-lite padded, ${fewest}–${most} tokens`, paddedMs));
  const at32 = sizes.indexOf(32);
  const perSecond = (ms) => `${Math.round((textCount * 1000) / ms)}/s`;
  comparison.push([
    `${fewest}–${most}`,
    ...[paddedMs[0], paddedMs[at32], packedMs[0], packedMs[at32]].map(perSecond),
    `${(paddedMs[at32] / packedMs[at32]).toFixed(2)}×`,
  ]);
}
await packed.session.release();
await padded.session.release();

const mlp = await loadMlp({});
const vectors = Array.from({ length: textCount }, () => Float32Array.from({ length: 768 }, () => random() - 0.5));
const [mlpMs] = await measure([(batch) => runMlp(batch, mlp)], vectors);
rows.push(gainRow("mlp 768-3072-768", mlpMs));
await mlp.release();

console.log(machine());
console.log("npm run bench -- use-lite");
console.log(
  `One thread, processor time; tokenising included; ${textCount} items a measurement, median of ${rounds} alternating rounds.`,
);
console.log("\nGain in items a second over one at a time:\n");
console.log(table(rows));
console.log("\nTexts a second:\n");
console.log(table(comparison));
