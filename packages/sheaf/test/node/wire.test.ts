import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameReader, frameOf } from "../../dist/node/wire/frame.js";
import { encodedRow, type RowEncoder } from "../../dist/node/wire/encoded-rows.js";
import type { Message } from "../../dist/node/wire/message.js";
import { largeRowBytes } from "../../dist/node/wire/layout.js";
import { pack, transferable, unpack, type RowOwnership } from "../../dist/node/wire/pack.js";

const there = (values: readonly unknown[], ownership: RowOwnership = "own"): unknown[] =>
  unpack(transferable(pack(values)).packed, ownership);

const floats = (length: number, from = 0): Float32Array => Float32Array.from({ length }, (_, i) => from + i);

const typedRow = fc.oneof(
  fc.float32Array(),
  fc.float64Array(),
  fc.uint8Array(),
  fc.int16Array(),
  fc.bigInt64Array(),
  fc.uint8ClampedArray(),
);
const cell = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
  fc.bigInt(),
  fc.date({ noInvalidDate: true }),
  typedRow,
);
// Structured clone drops a null prototype.
const plain = { noNullPrototype: true };

/** Lists of one kind, as batches are, and lists of anything. */
const list = fc.oneof(
  fc.array(fc.string({ unit: "binary" })),
  // Lone surrogates too, which UTF-8 cannot carry.
  fc.array(fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes))),
  fc.array(fc.double()),
  fc.array(fc.boolean()),
  fc.array(fc.float32Array()),
  fc.array(fc.float32Array({ minLength: 5, maxLength: 5 })),
  fc.array(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
  fc.array(fc.uint8Array().map((bytes) => bytes.slice().buffer)),
  fc.array(
    fc.record({ vector: fc.float32Array(), tokens: fc.nat(), truncated: fc.boolean(), text: fc.string() }, plain),
  ),
  fc.array(fc.record({ a: fc.record({ b: cell }, plain), c: cell }, plain)),
  fc.array(fc.dictionary(fc.string(), cell, plain)),
  fc.array(cell),
  fc.array(fc.anything({ withBigInt: true, withMap: true, withSet: true, withTypedArray: true })),
);

test("any list comes out as it went in, no matter who owns the rows", () => {
  fc.assert(
    fc.property(list, fc.constantFrom<RowOwnership>("own", "view"), (values, ownership) => {
      assert.deepEqual(there(values, ownership), values);
    }),
    { seed: 20_261_126, numRuns: 1000 },
  );
});

test("packing changes and detaches nothing of the caller's", () => {
  fc.assert(
    fc.property(fc.array(typedRow, { minLength: 1 }), (values) => {
      const before = structuredClone(values);
      there(values);
      assert.deepEqual(values, before);
    }),
  );
});

test("rows that stand back to back in one buffer, as cut from one tensor, come out as they went in", () => {
  const all = floats(1000, 5);
  const cuts = [
    [0, 40, 80, 120], // equal rows
    [7, 47, 50, 50, 200], // rows of any length, an empty one too
  ];
  for (const ends of cuts) {
    const rows = ends.slice(1).map((end, i) => all.subarray(ends[i]!, end));
    for (const ownership of ["own", "view"] as const) assert.deepEqual(there(rows, ownership), rows);
    for (const other of [rows.toReversed(), [...rows, all.slice(3, 90)], [all.subarray(0, 40), all.subarray(41, 81)]])
      assert.deepEqual(there(other), other);
  }
  const bytes = Buffer.from(all.buffer);
  const buffers = [bytes.subarray(8, 408), bytes.subarray(408, 900)];
  assert.deepEqual(there(buffers), buffers);
});

test("rows from windows of a bigger buffer carry their own bytes only", () => {
  const all = floats(100);
  const rows = [all.subarray(3, 7), all.subarray(50, 54)];
  assert.deepEqual(
    there(rows),
    rows.map((row) => row.slice()),
  );
  assert.ok(pack(rows).buffer.byteLength < 100);
});

test("results own their memory: a caller that transfers its row takes no other", () => {
  const [first, second] = there([floats(8), floats(8, 8)]) as Float32Array<ArrayBuffer>[];
  structuredClone(first, { transfer: [first!.buffer] });
  assert.equal(first!.length, 0);
  assert.deepEqual(second, floats(8, 8));
});

test("a worker sees equal rows back to back in one buffer", () => {
  const [first, second] = there([floats(8), floats(8, 8)], "view") as Float32Array[];
  assert.equal(first!.buffer, second!.buffer);
  assert.equal(second!.byteOffset, first!.byteOffset + first!.byteLength);
  assert.equal(first!.byteOffset % 8, 0);
});

test("rows of 64 KiB and up have a buffer each, beside small ones of the same list", () => {
  const big = floats(largeRowBytes / 4);
  const rows = [floats(3), big, floats(2), floats(largeRowBytes / 4 + 1, 7)];
  const { packed, transfer } = transferable(pack(rows));
  assert.equal(transfer.length, 3);
  assert.notEqual(packed.large[0]!.buffer, big.buffer);
  assert.deepEqual(unpack(packed, "view"), rows);
});

test("errors stand in their slots with class, name, message, code, cause and stack", () => {
  const error = Object.assign(new RangeError("too long", { cause: new Error("deep") }), {
    code: "E_LONG",
    itemIndex: 2,
  });
  const results = there([1, error, 3, new DOMException("gone", "AbortError")]);
  assert.deepEqual([results[0], results[2]], [1, 3]);
  const [, rebuilt, , abort] = results as (RangeError & { code: string; itemIndex: number })[];
  assert.ok(rebuilt instanceof RangeError);
  assert.deepEqual([rebuilt.message, rebuilt.code, rebuilt.itemIndex], ["too long", "E_LONG", 2]);
  assert.equal(rebuilt.stack, error.stack);
  assert.equal((rebuilt.cause as Error).message, "deep");
  assert.ok(abort instanceof Error);
  assert.deepEqual([abort.name, abort.message], ["AbortError", "gone"]);
});

test("a __proto__ key stays a key", () => {
  const value = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}') as object;
  const [copy] = there([value]) as object[];
  assert.deepEqual(Object.keys(copy!), ["__proto__", "a"]);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("what cannot be cloned is refused by name", () => {
  assert.throws(() => pack([() => undefined]), /could not be cloned/);
});

test("frames come out whole and in order, however the pipe cuts them", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(255), fc.nat(), fc.double({ noNaN: true }), fc.option(list)), { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }),
      fc.boolean(),
      (sent, cuts, direct) => {
        const messages = sent.map(([kind, id, value, values]): Message => {
          const packed = values === null ? undefined : transferable(pack([...values, ...bigRowNowAndThen(id)])).packed;
          return { kind, id, value, memoryBytes: id / 2, packed };
        });
        const bytes = Buffer.concat(messages.flatMap((message) => frameOf(message)));
        const received: Message[] = [];
        const reader = new FrameReader((message) => received.push(message));
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const cut = bytes.subarray(at, at + cuts[i % cuts.length]!);
          at += direct ? readInto(reader, cut) : (reader.push(cut), cut.length);
        }
        assert.deepEqual(received.map(comparable), messages.map(comparable));
      },
    ),
    { seed: 20_261_126, numRuns: 200 },
  );
});

const bigRowNowAndThen = (id: number): Uint8Array[] => (id % 3 === 0 ? [new Uint8Array(70_000).fill(id)] : []);

function readInto(reader: FrameReader, bytes: Uint8Array): number {
  const target = reader.target();
  const count = Math.min(target.byteLength, bytes.byteLength);
  target.set(bytes.subarray(0, count));
  reader.received(count, target);
  return count;
}

const comparable = ({ packed, ...rest }: Message): unknown => ({
  ...rest,
  parts: packed && [new Uint8Array(packed.buffer), ...packed.large].map((part) => Buffer.from(part).toString("base64")),
});

const hex: RowEncoder = {
  maxBytes: (row) => 8 * row.length,
  write(row, target, offset) {
    const bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength);
    return offset + Buffer.from(target.buffer, target.byteOffset).write(bytes.toString("hex"), offset, "latin1");
  },
};
const hexOf = (row: Float32Array): string => Buffer.from(row.buffer, row.byteOffset, row.byteLength).toString("hex");
const encodedText = (row: Float32Array): string | undefined => {
  const bytes = encodedRow(row);
  return bytes && Buffer.from(bytes).toString("latin1");
};

test("rows travel with what the encoder made of them: bare, in objects, and beside errors", () => {
  const row = fc.float32Array({ noNaN: true, maxLength: 40 });
  const item = fc.record({ vector: row, tokens: fc.nat(), scores: row }, plain);
  const results = fc.oneof(fc.array(row), fc.array(item), fc.array(fc.oneof(row, fc.constant(new Error("bad")))));
  fc.assert(
    fc.property(results, fc.constantFrom<RowOwnership>("own", "view"), (values, ownership) => {
      const back = unpack(transferable(pack(values as unknown[], hex)).packed, ownership);
      values.forEach((value, i) => {
        if (value instanceof Error) return;
        const [sent, got] = value instanceof Float32Array ? [[value], [back[i]]] : [value, back[i]].map((one) => {
          const { vector, scores } = one as { vector: Float32Array; scores: Float32Array };
          return [vector, scores];
        }); // prettier-ignore
        sent!.forEach((sentRow, k) => {
          const gotRow = got![k] as Float32Array;
          assert.equal(hexOf(gotRow), hexOf(sentRow as Float32Array));
          assert.equal(encodedText(gotRow), hexOf(sentRow as Float32Array));
        });
      });
    }),
    { seed: 20_261_126, numRuns: 500 },
  );
});

test("rows of 64 KiB, other arrays and unencoded lists have no encoded bytes", () => {
  const encodedOf = (values: unknown[], encoder?: RowEncoder): (string | undefined)[] =>
    (unpack(transferable(pack(values, encoder)).packed, "view") as Float32Array[]).map(encodedText);
  assert.deepEqual(encodedOf([floats(2)]), [undefined]);
  assert.deepEqual(encodedOf([floats(2)], hex), [hexOf(floats(2))]);
  assert.deepEqual(encodedOf([floats(largeRowBytes / 4), floats(2)], hex), [undefined, undefined]);
  assert.deepEqual(encodedOf([new Float64Array(2)], hex), [undefined]);
});

test("rows that would take more than 16 MiB encoded travel as they are", () => {
  const greedy: RowEncoder = { ...hex, maxBytes: () => 5 * 2 ** 20 };
  const back = (count: number): (string | undefined)[] =>
    (
      unpack(
        pack(
          Array.from({ length: count }, () => floats(1, 1)),
          greedy,
        ),
        "view",
      ) as Float32Array[]
    ).map(encodedText);
  assert.deepEqual(back(3), Array(3).fill(hexOf(floats(1, 1))));
  assert.deepEqual(back(4), Array(4).fill(undefined));
});
