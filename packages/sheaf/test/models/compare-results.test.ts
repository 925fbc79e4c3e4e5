import assert from "node:assert/strict";
import { test } from "node:test";
import { compareResults } from "../../dist/models/compare-results.js";

/** The difference of each output, where there is one. */
const differences = (one: unknown, other: unknown, more: readonly unknown[] = []): Record<string, number> =>
  Object.fromEntries([...compareResults([[one, other]], more)].filter(([, rate]) => rate > 0));

test("equal results of every type do not differ", () => {
  const results = [
    1,
    "text",
    10n,
    true,
    null,
    undefined,
    NaN,
    new Date(5),
    [1, [2.5, "a"]],
    new Map([["a", 1]]),
    new Set([1, 2]),
    Float32Array.of(1, NaN, Infinity),
    BigInt64Array.of(1n),
    Uint8Array.of(1).buffer,
    { vector: Float64Array.of(1, 2), tokens: 3, names: ["a"] },
  ];
  for (const result of results) assert.deepEqual(differences(result, structuredClone(result)), {});
});

test("floats differ by a share of their output's largest value", () => {
  assert.deepEqual(differences(Float32Array.of(1, 4), Float32Array.of(2, 4)), { "": 0.25 });
  assert.deepEqual(differences([0.5, 4], [1.5, 4]), { "": 0.25 });
  assert.deepEqual(
    differences({ a: Float64Array.of(10), b: Float64Array.of(1) }, { a: Float64Array.of(10), b: Float64Array.of(2) }),
    { ".b": 0.5 },
    "each output has a scale of its own",
  );
  assert.deepEqual(differences(Float64Array.of(1), Float64Array.of(2), [Float64Array.of(8)]), { "": 0.125 });
});

test("a result that is all zeros has the scale of what it is compared with", () => {
  assert.deepEqual(differences(Float64Array.of(0, 0), Float64Array.of(0.5, 1)), { "": 1 });
  const [rounding] = Object.values(differences(Float64Array.of(0), Float64Array.of(1e-9)));
  assert.ok(rounding! < 1e-3, `rounding near zero counts as ${rounding}`);
});

test("whole numbers, texts, lengths, types and names that change have no share", () => {
  const changed: [unknown, unknown][] = [
    [Int32Array.of(1), Int32Array.of(2)],
    [BigInt64Array.of(1n), BigInt64Array.of(2n)],
    [Uint8Array.of(1).buffer, Uint8Array.of(2).buffer],
    [3, 4],
    ["a", "b"],
    [true, false],
    [null, 1],
    [Float32Array.of(1), Float32Array.of(1, 2)],
    [Float32Array.of(1), Float32Array.of(NaN)],
    [[1], { 0: 1 }],
    [{ a: 1 }, { b: 1 }],
    [new Map([["a", 1]]), new Map([["a", 2]])],
    [new Date(1), new Date(2)],
  ];
  for (const [one, other] of changed) assert.deepEqual(Object.values(differences(one, other)), [Infinity]);
});

test("a number is a whole one only where all of its output are", () => {
  assert.deepEqual(differences([0, 1], [0.25, 0.75]), { "": 0.25 });
});

test("an error among the results is thrown, and a value that holds itself comes to an end", () => {
  assert.throws(() => compareResults([[1, new Error("no memory")]]), /no memory/);
  const ring: Record<string, unknown> = { score: 1 };
  ring["self"] = ring;
  assert.deepEqual(differences(ring, ring), {});
});
