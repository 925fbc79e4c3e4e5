// Prompts that share a long beginning (instructions, a document, few-shot examples) run together: a model processes the
// beginning once a batch, whatever number of endings follows. groupKey keeps different beginnings apart.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher, greedy } from "sheaf";

const words = (text) => text.split(" ").length;
const prefixes = ["translate", "summarise", "classify", "answer"].map(
  (what) => `${what} the text as these examples show: ${"an example with its answer ".repeat(40)}`,
);
const questions = Array.from({ length: 200 }, (_, i) => ({
  prefix: prefixes[(i * 7 + (i >> 3)) % prefixes.length],
  suffix: `text number ${i}`,
}));

// Stands for a model with a prefix cache that lives as long as a run: it pays for every word once.
function pretendModel() {
  const paid = { prefixes: 0, suffixes: 0, runs: [] };
  const run = async (prompts) => {
    const inRun = new Set(prompts.map(({ prefix }) => prefix));
    for (const prefix of inRun) paid.prefixes += words(prefix);
    for (const { suffix } of prompts) paid.suffixes += words(suffix);
    paid.runs.push({ size: prompts.length, prefixes: inRun.size });
    await sleep(5);
    return prompts.map(({ prefix, suffix }) => `${prefix.split(" ", 1)[0]}: ${suffix}`);
  };
  return { run, paid };
}

async function ask(name, options) {
  const { run, paid } = pretendModel();
  const complete = createBatcher(run, { maxBatchSize: 32, concurrency: 1, policy: greedy(), ...options });
  const answers = await Promise.all(questions.map((question) => complete(question)));
  answers.forEach((answer, i) => assert.ok(answer.endsWith(questions[i].suffix), "everybody's own answer"));
  await complete.close();
  const mixed = paid.runs.filter((each) => each.prefixes > 1).length;
  console.log(
    `${name}  ${String(paid.runs.length).padStart(3)} runs, ${String(mixed).padStart(2)} mixed, ` +
      `${String(paid.prefixes).padStart(6)} words of prefixes, ${paid.suffixes} of suffixes`,
  );
  return { ...paid, mixed };
}

const alone = await ask("one at a time     ", { maxBatchSize: 1 });
const mixed = await ask("batches, any order", {});
const grouped = await ask("groupKey: prefix  ", { groupKey: ({ prefix }) => prefix });

assert.equal(alone.runs.length, 200);
assert.ok(mixed.mixed > 0);
// No batch mixes prefixes, so each prefix is processed once a batch: 4 prefixes × ⌈50 / 32⌉ batches.
assert.ok(grouped.runs.every((run) => run.prefixes === 1));
assert.equal(grouped.runs.length, 8);
assert.equal(grouped.prefixes, 2 * prefixes.reduce((sum, prefix) => sum + words(prefix), 0));
const saved = 1 - grouped.prefixes / mixed.prefixes;
console.log(`groupKey saves ${(100 * saved).toFixed(0)} % of the prefix work of mixed batches`);
assert.ok(saved > 0.5);
