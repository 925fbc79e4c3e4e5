// JSON values that are expensive to parse or that JavaScript would change, each with what a server must do with it.
import fc from "fast-check";

/** The bounds of the servers under attack: small, so that small bodies reach them. */
export const jsonLimits = { jsonKeys: 600, jsonArrays: 1000 };
/** The most inputs of a request, and the most levels of arrays and objects. */
export const mostInputs = 100;
const deepest = 500;

/** A value: its text, its counts, whether JSON.parse would change it, and whether it is JSON at all. */
const value = (text, counts = {}) => ({
  text,
  depth: 0,
  keys: 0,
  arrays: 0,
  isChanged: false,
  isBroken: false,
  ...counts,
});

const nested = fc
  .record({ depth: near(deepest, 15_000), isObject: fc.boolean(), isBroken: fc.boolean() })
  .map(({ depth, isObject, isBroken }) => {
    const [open, close] = isObject ? ['{"a":', "}"] : ["[", "]"];
    const text = open.repeat(depth) + (isBroken ? "" : `1${close.repeat(depth)}`);
    return value(text, { depth, keys: isObject ? depth : 0, arrays: depth, isBroken });
  });
const manyKeys = near(jsonLimits.jsonKeys, 6000).map((keys) =>
  value(`{${Array.from({ length: keys }, (_, i) => `"k${i}" :0`).join()}}`, { depth: 1, keys, arrays: 1 }),
);
const manyArrays = fc.tuple(near(jsonLimits.jsonArrays, 20_000), fc.constantFrom("[]", "{}", "[ ]")).map(([arrays, one]) =>
  value(`[${Array(arrays - 1).fill(one).join()}]`, { depth: arrays > 1 ? 2 : 1, arrays }),
); // prettier-ignore

const digits = fc.stringMatching(/^-?[1-9]\d{0,30}$/);
const numbers = fc
  .oneof(
    digits,
    fc.constantFrom("9007199254740993", "-12345678901234567890", "1e400", "-1e309", "9".repeat(400), "1e308", "5e-324"),
    fc.tuple(digits, fc.integer({ min: -400, max: 400 })).map(([mantissa, exponent]) => `${mantissa}e${exponent}`),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  )
  .map((text) => {
    // An integer is kept where JavaScript writes it as it was sent.
    const isOther = /^-?\d+$/.test(text) && String(Number(text)) !== text;
    return value(text, { isChanged: isOther || !Number.isFinite(Number(text)) });
  });
const surrogates = fc
  .array(fc.oneof(fc.constantFrom("\\ud800", "\\uDC00", "\\ud83d\\ude00", "\\\\ud800", "é", "a"), fc.nat(0xffff).map((code) => `\\u${code.toString(16).padStart(4, "0")}`)), { minLength: 1, maxLength: 6 })
  .map((parts) => value(`"${parts.join("")}"`, { isChanged: !JSON.parse(`"${parts.join("")}"`).isWellFormed() })); // prettier-ignore
/** The same values further inside, a text also as a key. */
const inside = (arbitrary) =>
  fc
    .tuple(arbitrary, fc.boolean())
    .map(([{ text, isChanged }, isKey]) =>
      isKey && text.startsWith('"')
        ? value(`[0,{${text}:1}]`, { depth: 2, keys: 1, arrays: 2, isChanged })
        : value(`[0,{"b":${text}}]`, { depth: 2, keys: 1, arrays: 2, isChanged }),
    );

const perhapsChanged = [numbers, surrogates, inside(numbers), inside(surrogates)];

/** Of each kind as many. */
export const hostileJson = fc.oneof(nested, manyKeys, manyArrays, ...perhapsChanged);

/** A list of values that JSON.parse may change; a long one of a single value too. */
export const hostileList = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.oneof(...perhapsChanged), { minLength: 1, maxLength: 8 }) },
  fc.tuple(fc.oneof(numbers, surrogates), near(mostInputs, 1000)).map(([one, count]) => Array(count).fill(one)),
);

/** Around a value in a request: `{"input":` and `}` are one level, one key and one object. */
export const oneObject = { depth: 1, keys: 1, arrays: 1 };

/** "refused" with 422, "broken" (not JSON, with 400 or 422), or "kept". */
export function outcomeOf({ depth, keys, arrays, isChanged, isBroken }, around = { depth: 0, keys: 0, arrays: 0 }) {
  const { jsonKeys, jsonArrays } = jsonLimits;
  const isOver = depth + around.depth > deepest || keys + around.keys > jsonKeys || arrays + around.arrays > jsonArrays;
  if (isBroken) return "broken";
  return isOver || isChanged ? "refused" : "kept";
}

/** Numbers about a bound, and some far above it. */
function near(bound, most) {
  return fc.oneof(
    fc.integer({ min: bound - 5, max: bound + 5 }),
    fc.integer({ min: 1, max: bound }),
    fc.integer({ min: bound, max: most }),
  );
}
