import assert from "node:assert/strict";
import { test } from "node:test";
import { selfTest } from "../../dist/models/self-test.js";

const items = [1, 2, 3];

/** A model of a function of the whole batch, and the sizes of its runs. */
function modelOf(batch: (items: number[]) => unknown[]): { run: typeof run; sizes: number[] } {
  const sizes: number[] = [];
  const run = async (all: readonly unknown[]): Promise<unknown[]> => {
    sizes.push(all.length);
    return batch([...all] as number[]);
  };
  return { run, sizes };
}

test("a model that treats each item on its own is independent, after nine runs", async () => {
  const { run, sizes } = modelOf((all) => all.map((item) => ({ vector: Float32Array.of(item), label: "a" })));
  assert.deepEqual(await selfTest(run, items), { verdict: "independent", differenceRate: 0 });
  assert.deepEqual(sizes, [1, 1, 1, 1, 1, 1, 3, 3, 8]);
});

test("up to 2 % is slight, more is dependent, at most thirteen runs tell", async () => {
  for (const [share, verdict] of [
    [0.015, "slightly-dependent"],
    [0.03, "dependent"],
  ] as const) {
    const { run, sizes } = modelOf((all) =>
      all.map((item) => Float64Array.of(item, all.length === 1 ? 1000 : 1000 * (1 - share))),
    );
    const found = await selfTest(run, items);
    assert.equal(found.verdict, verdict);
    assert.ok(Math.abs(found.differenceRate - share) < 1e-9);
    assert.equal(sizes.length, 13);
  }
});

test("a difference in one output of many, of one item, at one place is seen", async () => {
  const { run } = modelOf((all) => all.map((item, i) => ({ item, first: i === 0 && item === 3 ? 0 : 0.5 })));
  // Item 3 alone is first too: what differs is item 3 at other places.
  assert.equal((await selfTest(run, items)).verdict, "dependent");
  const { run: labels } = modelOf((all) => all.map((item) => ({ item, label: all.length > 2 ? "many" : "few" })));
  assert.deepEqual(await selfTest(labels, items), { verdict: "dependent", differenceRate: Infinity });
});

test("a difference that does not repeat in another batch is chance", async () => {
  const { run, sizes } = modelOf((all) => all.map(() => (sizes.length === 7 ? 0.5 : 1.5)));
  assert.equal((await selfTest(run, items)).verdict, "independent");
});

test("a model that differs from itself is not deterministic, even where it shows late", async () => {
  const { run: random } = modelOf((all) => all.map(() => Math.random()));
  assert.equal((await selfTest(random, items)).verdict, "not-deterministic");
  // Alone it gives the same twice and in batches by chance something else.
  let calls = 0;
  const { run: late } = modelOf((all) => all.map(() => (++calls <= 6 ? 0.5 : 1 / calls)));
  assert.equal((await selfTest(late, items)).verdict, "not-deterministic");
});

test("an output that is not deterministic hides no other that depends on the batch", async () => {
  const { run } = modelOf((all) => all.map(() => ({ id: Math.random(), score: all.length * 1.5 })));
  assert.equal((await selfTest(run, items)).verdict, "dependent");
});

test("no run is larger than the batches that are served", async () => {
  const { run, sizes } = modelOf((all) => all.map(() => all.length));
  assert.equal((await selfTest(run, items, { maxBatchSize: 2 })).verdict, "dependent");
  assert.equal(Math.max(...sizes), 2);
  sizes.length = 0;
  assert.equal((await selfTest(run, items, { maxBatchSize: 1 })).verdict, "independent");
  assert.equal(Math.max(...sizes), 1);
});

test("what an input far from the items does to their results counts, unless it fails alone", async () => {
  // As a scale that all items of a batch share.
  const { run, sizes } = modelOf((all) => {
    if (all.length === 1 && all[0] === 7e7) throw new Error("too large");
    const step = Math.max(...all) / 1e4;
    return all.map((item) => Float64Array.of(Math.round(item / step) * step));
  });
  assert.equal((await selfTest(run, items)).verdict, "independent");
  assert.equal((await selfTest(run, items, { neighbours: [7e7] })).verdict, "independent");
  assert.equal((await selfTest(run, items, { neighbours: [1e6], maxBatchSize: 2 })).verdict, "dependent");
  sizes.length = 0;
  assert.deepEqual(await selfTest(run, items, { neighbours: [1e6] }), { verdict: "dependent", differenceRate: 1 });
  assert.ok(sizes.length <= 13 + 3, `${sizes.length} runs`);
});

test("a run that fails, or gives too few results, rejects", async () => {
  const { run: broken } = modelOf(() => [new Error("no memory")]);
  await assert.rejects(selfTest(broken, items), /no memory/);
  const { run: short } = modelOf((all) => all.slice(1));
  await assert.rejects(selfTest(short, items), /0 results for 1 items/);
});
