import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { binaryCodec } from "../../../dist/internal/nats.js";

const { encode, decode } = binaryCodec;
const seed = 20_260_701;

test(`what JSON can hold, with BigInts and typed arrays anywhere in it, arrive as they were sent (seed ${seed})`, () => {
  const leaf = fc.oneof(
    fc.jsonValue(),
    fc.float32Array(),
    fc.bigInt(),
    fc.constantFrom("\u0000binary:7:3", "\u0000binary:t:n:1", "\ufeff", "\ufeffa"),
    fc.uint8Array(),
    fc.bigInt64Array(),
    fc.float64Array({ noNaN: true }),
  );
  const value = fc.oneof(leaf, fc.array(leaf), fc.dictionary(fc.string(), leaf));
  fc.assert(
    fc.property(value, (sent) => {
      // A null prototype and minus zero are not JSON's.
      const expected = normalised(sent);
      assert.deepEqual(decode(encode(sent)), expected);
    }),
    { seed, numRuns: 300 },
  );
});

function normalised(value: unknown): unknown {
  if (ArrayBuffer.isView(value) || typeof value !== "object" || value === null) return Object.is(value, -0) ? 0 : value;
  if (Array.isArray(value)) return value.map(normalised);
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, normalised(held)]));
}

test("a result owns its memory: the message it came in can be reused", () => {
  const bytes = encode(Float32Array.of(1, 2, 3));
  const floats = decode(bytes) as Float32Array;
  bytes.fill(0);
  assert.deepEqual([...floats], [1, 2, 3]);
});

test("undefined arrives; what cannot travel is refused by name", () => {
  assert.equal(decode(encode(undefined)), undefined);
  assert.throws(() => encode(() => 1), { name: "TypeError", message: /function cannot be sent to another machine/ });
  assert.throws(() => decode(Uint8Array.of(99)), { name: "TypeError", message: /same codec/ });
});
