import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { floatInputsOf } from "../../dist/server/codec/float-inputs.js";

const seed = 20_260_101;
const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const number = fc.float({ noNaN: true, noDefaultInfinity: true });

test(`what is read straight from bytes equals what JSON.parse reads, envelope and white space alike (seed ${seed})`, () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(number, { minLength: 3, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
      space,
      (rows, gap) => {
        const expected = rows.map((row) => Float32Array.from(JSON.parse(JSON.stringify(row)) as number[]));
        const list = (row: number[]): string =>
          `${gap}[${row.map((value) => gap + JSON.stringify(value)).join(`${gap},`)}${gap}]${gap}`;
        const [first] = rows.map(list);
        for (const text of [first!, `${gap}{${gap}"input"${gap}:${first}}${gap}`]) {
          const read = floatInputsOf(Buffer.from(text), 3, 10);
          assert.ok(read !== undefined && "item" in read, text);
          assert.deepEqual(read.item, expected[0]);
        }
        const several = `${gap}{${gap}"inputs"${gap}:${gap}[${rows.map(list).join(",")}]${gap}}${gap}`;
        const read = floatInputsOf(Buffer.from(several), 3, 10);
        assert.ok(read !== undefined && "items" in read, several);
        assert.deepEqual(read.items, expected);
      },
    ),
    { seed, numRuns: 300 },
  );
});

test("whatever is not exactly that is left to JSON.parse", () => {
  for (const text of [
    "",
    " ",
    "[1,2]",
    "[1,2,3,4]",
    "[1,2,3",
    "[1,2,3]]",
    "[1,2,3]x",
    "[1,2,NaN]",
    "[1,2,1e999]",
    '[1,2,"3"]',
    "[[1,2,3]]",
    '"[1,2,3]"',
    '{"input":[1,2,3]',
    '{"input":[1,2,3]}}',
    '{"input":[1,2,3],"x":1}',
    '{"x":[1,2,3]}',
    '{"input":1}',
    '{"inputs":[1,2,3]}',
    '{"inputs":[]}',
    '{"inputs":[[1,2,3],]}',
    '{"inputs":[[1,2,3]]',
    '{"inputs":[[1,2,3],[1,2]]}',
    '{"inputs":[[1,2,3]],"x":1}',
    `{"inputs":[${new Array(11).fill("[1,2,3]").join()}]}`,
  ])
    // prettier-ignore
    assert.equal(floatInputsOf(Buffer.from(text), 3, 10), undefined, text);
});
