import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { workerProcess, workerThread } from "sheaf/node";
import type { ModelSpec, ModuleSpec } from "../../dist/runners/contract/model-spec.js";
import { tryOutModule, type ModuleTrialOptions } from "../../dist/runners/self-test/module-trial.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { folder, write } from "./made-models.js";

after(() => rmSync(folder, { recursive: true, force: true }));

const tried = async (
  path: string,
  { open = workerThread, batchDependent }: Partial<ModuleTrialOptions> = {},
): Promise<ModelSpec> => tryOutModule((await resolveModel(path)) as ModuleSpec, { open, batchDependent });

/** Its results are shares of the batch's largest item. */
const unsteady = `
  export const sample = (index) => [index + 1, 10 ** index];
  export default { run: (items) => items.map((item) => item.map((n) => n / Math.max(...items.flat()))) };`;

test("a module whose results depend on their batch-mates runs one by one, and in batches where the setting says so", async () => {
  const path = write("unsteady.mjs", unsteady);
  const single = await tried(path);
  assert.match(single.warning!, /in a batch they differ from those of single items \(by up to 99 %\)/);
  assert.match(single.warning!, /So items run one by one; BATCH_DEPENDENT=batch/);
  assert.match(single.note!, /takes and gives any JSON value\. Its results depend on their batch-mates/);
  assert.deepEqual([single.maxBatchSize, single.sample, single.selfTest], [1, [1, 1], "dependent"]);
  const batched = await tried(path, { batchDependent: "batch" });
  assert.equal(batched.maxBatchSize, undefined);
  assert.match(batched.warning!, /run in batches all the same \(BATCH_DEPENDENT=batch\)/);
  const exact = await tried(path, { batchDependent: "exact" });
  assert.equal(exact.maxBatchSize, 1);
  assert.match(exact.warning!, /items run one by one \(BATCH_DEPENDENT=exact\)/);
});

test("a module that gives another result each time is not deterministic, and runs in batches", async () => {
  const path = write(
    "random.mjs",
    "export const sample = (i) => i; export default { run: (items) => items.map(() => ({ score: Math.random() })) };",
  );
  const { selfTest, maxBatchSize, warning } = await tried(path);
  assert.deepEqual([selfTest, maxBatchSize], ["not-deterministic", undefined]);
  assert.match(warning!, /^It is not deterministic: an item that ran alone several times gave different results/);
});

test("a module that gives the same alone and in a batch is served without a warning, and warmed up with its sample", async () => {
  const path = write(
    "steady.mjs",
    "export const sample = 3; export default { run: (items) => items.map((n) => n * 2) };",
  );
  const { warning, sample, note } = await tried(path);
  assert.deepEqual([warning, sample, note], [undefined, 3, "A worker module: takes and gives any JSON value."]);
});

test("a module says whether its results may be kept, with a sample and without", async () => {
  const worker = "export default { run: (items) => items };";
  const plain = await tried(write("kept-plain.mjs", worker));
  const never = await tried(write("kept-never.mjs", `export const isCacheable = false; ${worker}`));
  const sampled = await tried(write("kept.mjs", `export const isCacheable = true; export const sample = 1; ${worker}`));
  assert.deepEqual([plain.isCacheable, never.isCacheable, sampled.isCacheable], [undefined, false, true]);
  const wrong = tried(write("kept-wrong.mjs", `export const isCacheable = "no"; ${worker}`));
  await assert.rejects(wrong, /isCacheable must be true or false, got "no"/);
});

test("a module without a sample is served as it is, and its note says so", async () => {
  const path = write("plain.mjs", "export default { run() { throw new Error('not run'); } };");
  const { warning, note } = await tried(path);
  assert.equal(warning, undefined);
  assert.match(note!, /It exports no sample, so it is not tried out/);
});

test("a module that fails on its own sample is served with a warning that says how", async () => {
  const path = write("picky.mjs", "export const sample = 1; export default { run() { throw new Error('no ones'); } };");
  assert.match((await tried(path)).warning!, /fails on its own sample: no ones/);
});

test("a module that crashes on its own sample in native code costs its process, not the server", async () => {
  const path = write("abort.mjs", "export const sample = 1; export default { run: () => process.abort() };");
  assert.match((await tried(path, { open: workerProcess })).warning!, /fails on its own sample: .*SIGABRT/);
});

test("a module that cannot be loaded says why: its syntax, an import, its load, its default export", async () => {
  const modules: [string, string, RegExp][] = [
    ["syntax", "export default {", /Unexpected/],
    ["import", 'import "./no-such.mjs"; export default {};', /Cannot find module .*no-such/],
    ["load", "export const sample = 1; export default { load() { throw new Error('no weights'); }, run: (a) => a };", /no weights/],
    ["none", "export const sample = 1; export default 1;", /.*must `export default defineWorker/],
  ]; // prettier-ignore
  for (const [name, source, reason] of modules)
    await assert.rejects(tried(write(`${name}.mjs`, source)), {
      message: new RegExp(`^${name} cannot be served: ${reason.source}`),
    });
});

test("a module's path may hold spaces, #, %, ? and letters of any alphabet", async () => {
  const odd = join(folder, "a folder", "50% #1 ?x=ü", "модель 模型");
  mkdirSync(odd, { recursive: true });
  const path = join(odd, "my model #2.mjs");
  writeFileSync(path, "export const sample = 1; export default { run: (items) => items };");
  for (const open of [workerThread, workerProcess]) {
    const { name, warning } = await tried(path, { open });
    assert.deepEqual([name, warning], ["my model #2", undefined]);
  }
});
