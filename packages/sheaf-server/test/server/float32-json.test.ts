import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { maxFloat32JsonBytes, parseFloat32Json } from "../../dist/server/codec/float32-json.js";
import { jsonBytes } from "../../dist/server/codec/json-bytes.js";

const seed = 20_250_101;

function fromBits(...bits: number[]): Float32Array {
  return new Float32Array(Uint32Array.from(bits).buffer);
}

function parse(text: string, room = 1000): { result: ReturnType<typeof parseFloat32Json>; values: number[] } {
  const target = new Float32Array(room);
  const result = parseFloat32Json(Buffer.from(text), 0, target);
  return { result, values: [...target.subarray(0, result.ok ? result.count : 0)] };
}

function assertRoundTrip(values: Float32Array): void {
  const text = jsonBytes([values]).toString("latin1");
  const doubles = JSON.parse(text) as number[];
  assert.equal(doubles.length, values.length);
  const back = new Float32Array(values.length);
  assert.ok(parseFloat32Json(Buffer.from(text), 0, back).ok);
  values.forEach((value, i) => {
    assert.ok(Object.is(Math.fround(doubles[i] as number), value), `${value} was written ${doubles[i]}`);
    assert.ok(Object.is(back[i], value), `${value} was read back as ${back[i]}`);
  });
}

const finiteBits = fc.integer({ min: 0, max: 0xffff_ffff }).filter((bits) => ((bits >>> 23) & 255) !== 255);

test("any float32 comes back bit for bit, by JSON.parse and by our parser", () => {
  fc.assert(
    fc.property(fc.array(finiteBits, { maxLength: 200 }), (bits) => assertRoundTrip(fromBits(...bits))),
    { seed, numRuns: 500 },
  );
});

test("200,000 patterns spread over all exponents come back bit for bit", () => {
  const bits = new Uint32Array(200_000);
  let state = seed;
  for (let i = 0; i < bits.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const exponent = i % 255;
    bits[i] = ((state & 0x807f_ffff) | (exponent << 23)) >>> 0;
  }
  assertRoundTrip(new Float32Array(bits.buffer));
});

test("denormals, both zeros, extremes and powers of ten come back bit for bit", () => {
  const powers = Array.from({ length: 80 }, (_, i) => Math.fround(10 ** (i - 42))).filter(Number.isFinite);
  assertRoundTrip(fromBits(1, 0x007f_ffff, 0x0080_0000, 0x7f7f_ffff, 0x8000_0000, 0, 0x8000_0001, 0xff7f_ffff));
  assertRoundTrip(Float32Array.from([...powers, ...powers.map((power) => -power)]));
  assertRoundTrip(
    Float32Array.from([999_999_999, 9.999_999_999, 0.099_999_999_9, 1e9, 1e-6, 9.5e-7, 16_777_216, 123_456_789]),
  );
});

test("no number takes more than the bytes that are set aside for it", () => {
  fc.assert(
    fc.property(finiteBits, (bits) => jsonBytes([fromBits(bits)]).length <= maxFloat32JsonBytes(fromBits(bits)) - 1),
    { seed, numRuns: 20_000 },
  );
});

test("numbers that were written short are written short again", () => {
  const values = Float32Array.of(0.1, -0.25, 1, 0, -0, 100, 3.14, 0.000_123, 65_504, -123.456, 1e20, 123_456_784);
  assert.equal(
    jsonBytes([values]).toString(),
    "[0.1,-0.25,1,0,-0,100,3.14,0.000123,65504,-123.456,1.00000002e+20,123456784]",
  );
  assert.equal(jsonBytes([new Float32Array(0)]).toString(), "[]");
});

test("what JSON has no number for is null", () => {
  assert.equal(jsonBytes([Float32Array.of(Number.NaN, Infinity, -Infinity, 1)]).toString(), "[null,null,null,1]");
});

test("every number is read as JSON.parse and Math.fround read it, however many digits it has", () => {
  const numberText = fc.oneof(
    fc.double({ noDefaultInfinity: true, noNaN: true, min: -3e38, max: 3e38 }).map(String),
    fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.integer({ min: -70, max: -3 })).map(([n, e]) => `${n}e${e}`),
    fc.tuple(fc.integer({ min: -999, max: 999 }), fc.stringMatching(/^\d{1,40}$/)).map(([n, d]) => `${n}.${d}`),
    // Half-way between two float32, where the last of many digits decides.
    finiteBits
      .filter((bits) => (bits & 0x7fff_ffff) < 0x7e00_0000)
      .map((bits) => {
        const [low, high] = fromBits(bits, bits + 1) as unknown as [number, number];
        return `${(low + high) / 2}`;
      }),
  );
  fc.assert(
    fc.property(fc.array(numberText, { minLength: 1, maxLength: 20 }), (texts) => {
      const { result, values } = parse(`[${texts.join(" , ")}]`);
      assert.ok(result.ok);
      texts.forEach((text, i) => assert.ok(Object.is(values[i], Math.fround(JSON.parse(text) as number)), text));
    }),
    { seed, numRuns: 5000 },
  );
});

test("arrays that JSON.parse refuses are malformed, whatever is changed in them", () => {
  const alphabet = [...'0123456789.,-+eE[] \n"nul'.split(""), "NaN", "1e5"];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...alphabet), { maxLength: 12 }), (parts) => {
      const text = `[${parts.join("")}`;
      const { result, values } = parse(text);
      let expected: unknown;
      try {
        expected = JSON.parse(text.slice(0, result.ok ? result.end : undefined));
      } catch {
        expected = undefined;
      }
      const isFlat = Array.isArray(expected) && expected.every((value) => typeof value === "number");
      if (result.ok) assert.deepEqual(values, (expected as number[]).map(Math.fround));
      else assert.ok(!isFlat || result.reason !== "malformed", text);
    }),
    { seed, numRuns: 20_000 },
  );
});

test("a number without room in float32 is refused with its place and its text", () => {
  for (const text of ["1e999", "-1e999", "3.5e38", "1e39", `1${"0".repeat(400)}`, "1e99999999999999999999"]) {
    const { result } = parse(`[0, 1, ${text}]`);
    assert.ok(!result.ok);
    assert.deepEqual([result.reason, result.index, result.offset], ["not-finite", 2, 7]);
    assert.equal(result.got, text.length > 24 ? `${text.slice(0, 23)}…` : text);
  }
  assert.ok(parse("[1e-999999999999, 0e999999]").result.ok);
});

test("what is not a number is refused with its place and its text", () => {
  const got = (text: string): unknown[] => {
    const { result } = parse(text);
    return result.ok ? ["ok"] : [result.reason, result.index, result.offset, result.got];
  };
  assert.deepEqual(got("[1, NaN]"), ["malformed", 1, 4, "NaN"]);
  assert.deepEqual(got('[1,2,"three", 4]'), ["malformed", 2, 5, '"three"']);
  assert.deepEqual(got("[1, [2]]"), ["malformed", 1, 4, "["]);
  assert.deepEqual(got("[null]"), ["malformed", 0, 1, "null"]);
  assert.deepEqual(got("[1,]"), ["malformed", 1, 3, "]"]);
  assert.deepEqual(got("[01]"), ["malformed", 0, 1, "01"]);
  assert.deepEqual(got("[1. ]"), ["malformed", 0, 1, "1."]);
  assert.deepEqual(got("[-]"), ["malformed", 0, 1, "-"]);
  assert.deepEqual(got("[1"), ["malformed", 0, 1, "1"]);
  assert.deepEqual(got("["), ["malformed", 0, 1, "the end of the text"]);
  assert.deepEqual(got("{}"), ["malformed", 0, 0, "{"]);
});

test("more numbers than asked for are refused at the first that is too many", () => {
  const { result } = parse("[1,2,3]", 2);
  assert.ok(!result.ok);
  assert.deepEqual([result.reason, result.index, result.offset, result.got], ["too-long", 2, 5, "3"]);
  assert.deepEqual(parse("[1,2]", 2).values, [1, 2]);
  assert.deepEqual(parse(" []".trim(), 0).result, { ok: true, end: 2, count: 0 });
});
