import assert from "node:assert/strict";
import { test } from "node:test";
import { halfOf, isFiniteHalf, numberOfHalf } from "../../../dist/runners/tensors/half.js";

const finite = Array.from({ length: 0x1_0000 }, (_, half) => half).filter(isFiniteHalf);

test("every finite half is a number, and that number is the half again", () => {
  assert.equal(finite.length, 2 * 31 * 1024);
  const other = finite.filter((half) => halfOf(numberOfHalf(half)) !== half);
  assert.deepEqual(other, []);
  // From the tables of IEEE 754.
  const known = { 0x3c00: 1, 0xc000: -2, 0x7bff: 65_504, 0x0400: 2 ** -14, 0x0001: 2 ** -24, 0x3555: 0.333251953125 };
  for (const [half, number] of Object.entries(known)) assert.equal(numberOfHalf(Number(half)), number);
});

test("a number between two halves goes to the nearer one, and from the middle to the even one", () => {
  for (let half = 0; half < 0x7bff; half++) {
    const [low, high] = [numberOfHalf(half), numberOfHalf(half + 1)];
    const middle = (low + high) / 2;
    assert.equal(halfOf(middle), half % 2 === 0 ? half : half + 1, `the middle above ${low}`);
    assert.equal(halfOf(middle * (1 - 2 ** -40)), half, `below the middle above ${low}`);
    assert.equal(halfOf(middle * (1 + 2 ** -40)), half + 1, `above the middle above ${low}`);
    assert.equal(halfOf(-middle), 0x8000 | halfOf(middle));
  }
});

test("a number too large for a half is an infinity, and NaN stays NaN", () => {
  assert.deepEqual([65_519.99, 65_520, 1e9, Infinity, -Infinity].map(halfOf), [0x7bff, 0x7c00, 0x7c00, 0x7c00, 0xfc00]);
  assert.ok(Number.isNaN(numberOfHalf(halfOf(Number.NaN))));
  assert.equal(numberOfHalf(0xfc00), -Infinity);
  assert.ok(Object.is(numberOfHalf(halfOf(-0)), -0));
});
