import assert from "node:assert/strict";
import { test } from "node:test";
import { Contention } from "../../dist/core/measure/contention.js";
import { LearnedCost } from "../../dist/core/measure/learned-cost.js";
import { nextSize } from "../../dist/policies/cost-model.js";
import { seededRandom } from "../../dist/internal/tuning.js";

const learned = (cost: (size: number) => number, sizes: number[], rounds = 30): LearnedCost => {
  const table = new LearnedCost();
  for (let round = 0; round < rounds; round++) for (const size of sizes) table.observe(size, cost(size));
  return table;
};

test("a straight cost is learned exactly", () => {
  const table = learned((n) => 10 + 0.3 * n, [1, 3, 8, 20, 32]);
  assert.ok(Math.abs(table.fixedMs - 10) < 0.1, `fixedMs ${table.fixedMs}`);
  assert.ok(Math.abs(table.perItemMs - 0.3) < 0.01, `perItemMs ${table.perItemMs}`);
  assert.ok(Math.abs(table.at(16) - 14.8) < 0.2, `at(16) ${table.at(16)}`);
});

test("what a size costs alone is put right once others show how far runs slow each other down", () => {
  const contention = new Contention();
  const cost = new LearnedCost({ contention });
  const run = (size: number, inFlight: number): void => {
    const runMs = inFlight * (5 + size);
    contention.observe(inFlight, size, runMs);
    cost.observe(size, runMs, undefined, inFlight);
  };
  // One place. As long as all runs meet three others, nothing shows how far they slow each other down.
  for (let i = 0; i < 20; i++) run(16, 4);
  contention.fit(4);
  for (let i = 0; i < 20; i++) run(8, 1);
  contention.fit(1);
  run(8, 1);
  assert.ok(Math.abs(cost.at(16) - 21) < 1, `16: ${cost.at(16)} ms`);
  assert.ok(Math.abs(cost.at(8) - 13) < 1, `8: ${cost.at(8)} ms`);
  const { fixedMs, perItemMs } = cost.judgement().costModel!;
  assert.ok(Math.abs(fixedMs! - 5) < 1 && Math.abs(perItemMs! - 1) < 0.1, `${fixedMs} + ${perItemMs} n`);
});

test("a cost without a fixed part has fixedMs exactly 0", () => {
  assert.equal(learned((n) => 2 * n, [1, 4, 16]).fixedMs, 0);
});

test("a staircase is kept beside the line", () => {
  const stairs = (n: number): number => 5 * Math.ceil(n / 8);
  const table = learned(stairs, [1, 4, 7, 8, 9, 12, 16, 17, 24, 32]);
  for (const size of [8, 9, 16, 17]) {
    assert.ok(Math.abs(table.at(size) - stairs(size)) < 0.6, `at(${size}) = ${table.at(size)}, cost ${stairs(size)}`);
  }
});

test("a first look at a size far off the line does not throw the rest of the table away", () => {
  const table = learned((n) => 4 * n, [1, 2]);
  for (let i = 0; i < 10; i++) table.observe(30, 1000);
  assert.ok(Math.abs(table.at(1) - 4) < 1, `at(1) ${table.at(1)}`);
});

test("one outlier in fifty moves the line by less than a tenth, and stays below the cost of its size", () => {
  const table = new LearnedCost();
  const random = seededRandom(7);
  for (let i = 0; i < 1000; i++) {
    const size = 1 + Math.floor(random() * 32);
    table.observe(size, (10 + 0.3 * size) * (i % 50 === 49 ? 10 : 1));
  }
  assert.ok(Math.abs(table.line(16) / 14.8 - 1) < 0.1, `line(16) ${table.line(16)}`);
});

test("a new truth is taken over within eight batches", () => {
  const table = learned((n) => 10 + 0.3 * n, [4]);
  for (let i = 0; i < 8; i++) table.observe(4, 50);
  assert.ok(Math.abs(table.at(4) / 50 - 1) < 0.1, `at(4) ${table.at(4)}`);
});

test("three stalls at the start do not distort the cost model, then or later", () => {
  const cost = new LearnedCost();
  const random = seededRandom(3);
  for (let i = 0; i < 400; i++) {
    const size = 1 + Math.floor(random() ** 2 * 32);
    cost.observe(size, i >= 20 && i < 23 ? 300 : (1.62 + 1.44 * size) * (0.9 + 0.2 * random()));
    if (i !== 100 && i !== 399) continue;
    const { fixedMs, perItemMs, fixedMsRange, perItemMsRange } = cost.judgement().costModel!;
    assert.ok(Math.abs(perItemMs / 1.44 - 1) < 0.1, `perItemMs ${perItemMs} after ${i + 1}`);
    assert.ok(Math.abs(fixedMs - 1.62) < 0.6, `fixedMs ${fixedMs} after ${i + 1}`);
    assert.ok(fixedMsRange[0] <= 1.62 && fixedMsRange[1] >= 1.62, `fixed ${fixedMsRange.join(" to ")}`);
    assert.ok(perItemMsRange[0] <= 1.44 && perItemMsRange[1] >= 1.44, `per item ${perItemMsRange.join(" to ")}`);
  }
});

test("sizes that never ran in the same time support no verdict: it may have been the machine", () => {
  const cost = new LearnedCost();
  for (let i = 0; i < 300; i++) cost.observe(i < 150 ? 1 : 16 + (i % 2), i < 150 ? 10 : 30);
  assert.equal(cost.judgement().verdict.verdict, "measuring");
  for (let i = 0; i < 300; i++) cost.observe(i % 2 === 0 ? 1 : 16, i % 2 === 0 ? 10 : 30);
  assert.equal(cost.judgement().verdict.verdict, "gains");
});

test("the cost model forgets: 512 batches after a change it is right again", () => {
  const cost = new LearnedCost();
  const sizes = [1, 4, 16];
  for (let i = 0; i < 600; i++) cost.observe(sizes[i % 3]!, 20 + sizes[i % 3]!);
  assert.equal(cost.judgement().verdict.verdict, "gains");
  for (let i = 0; i < 600; i++) cost.observe(sizes[i % 3]!, 5 * sizes[i % 3]!);
  assert.equal(cost.judgement().verdict.verdict, "gains-nothing");
  assert.ok(cost.judgement().costModel!.fixedMs < 0.5);
});

test("nothing is ever NaN: cold, with one size, with zeros, with nonsense", () => {
  const table = new LearnedCost();
  const check = (): void => {
    for (const value of figuresOf(table.judgement())) assert.ok(Number.isFinite(value) && value >= 0, String(value));
    for (const value of [table.fixedMs, table.perItemMs, table.noise, table.at(1), table.at(1e9), table.line(5)])
      assert.ok(Number.isFinite(value) && value >= 0, String(value));
  };
  check();
  for (let i = 0; i < 20; i++) table.observe(1, 0);
  check();
  table.observe(NaN, 3);
  table.observe(3, NaN);
  table.observe(0, 1);
  table.observe(5, Infinity);
  check();
  for (let i = 0; i < 200; i++) table.observe(1 + (i % 3) * 1e5, 1e-9 * i);
  check();
});

test("the sizes asked about are 1 to 8, then four an octave, growing forever", () => {
  const sizes = [];
  for (let size = 1; size <= 64; size = nextSize(size)) sizes.push(size);
  assert.deepEqual(sizes, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64]);
});

function figuresOf(value: unknown): number[] {
  if (typeof value === "number") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(figuresOf) : [];
}
