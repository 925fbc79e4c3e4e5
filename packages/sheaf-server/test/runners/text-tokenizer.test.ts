import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { tokenFinders } from "../../dist/runners/text/tokenizer/added-tokens.js";
import { wordModelOf } from "../../dist/runners/text/tokenizer/models.js";
import { normalizerOf } from "../../dist/runners/text/tokenizer/normalizers.js";
import { TextTokenizer } from "../../dist/runners/text/tokenizer/tokenizer.js";

const base = fileURLToPath(new URL("../../test/fixtures/text-folders", import.meta.url));
const read = (name: string, file: string): any => JSON.parse(readFileSync(join(base, name, file), "utf8"));

for (const name of readdirSync(base))
  test(`${name}: a text that is not read to its end has the first tokens of the whole`, () => {
    const tokenizer = new TextTokenizer(read(name, "tokenizer.json"));
    const odd = (read(name, "expected.json").texts as unknown[]).flatMap((text) =>
      typeof text === "string" ? [text] : [],
    );
    const texts = [
      [...odd, ...odd].join(" "),
      "the cat sits outside and waits ".repeat(700),
      "\u6F22\u5B57\u6587 ".repeat(10) + "\u6F22\u5B57\u6587".repeat(5000),
      "Y2F0IHNpdHM".repeat(2000),
      odd.join("x 1"),
    ];
    const special = tokenizer.specialTokens(false);
    for (const [i, text] of texts.entries()) {
      const whole = tokenizer.encode(text, Infinity).ids;
      for (const most of [special, special + 1, 16, 300, 3000]) {
        const { ids, truncated, textTokens = 0, isReadWhole } = tokenizer.encode(text, most);
        assert.equal(truncated, whole.length > most, `text ${i}, ${most} tokens`);
        const isCounted = isReadWhole === true ? textTokens === whole.length : textTokens <= whole.length;
        assert.ok(!truncated || (textTokens > most && isCounted), `text ${i}, ${most} of ${textTokens} tokens`);
        const own = most - special;
        const [before] = [whole.findIndex((id, place) => id !== ids[place])];
        assert.ok(ids.length <= most && (before === -1 || before >= Math.min(own, whole.length - special)), `text ${i}, ${most} tokens`); // prettier-ignore
      }
    }
  });

test("an added token is found also where a text that is not read to its end would end in it", () => {
  const file = read("bert-cls", "tokenizer.json");
  const added = { id: 99, content: "newyorkers inthecity", normalized: true, special: false };
  const tokenizer = new TextTokenizer({ ...file, added_tokens: [...file.added_tokens, added] });
  const most = tokenizer.specialTokens(false) + 3;
  const text = `${"x".repeat(240)} newyorkers inthecity ${"the cat sits ".repeat(40)}`;
  assert.deepEqual(
    tokenizer.encode(text, most).ids.slice(0, most - 1),
    tokenizer.encode(text, Infinity).ids.slice(0, most - 1),
  );
});

/** A vocabulary of random merges, in an order that no training would give, and a word that repeats itself or does not. */
function randomPairs(seed: number): { readonly config: object; readonly word: string } {
  let state = seed;
  const random = (most: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % most;
  };
  const letters = "abcde".slice(0, 1 + random(5));
  const tokens = letters.split("");
  const merges: [string, string][] = [];
  for (let i = 0; i < 4 + random(60); i++) {
    const pair: [string, string] = [tokens[random(tokens.length)]!, tokens[random(tokens.length)]!];
    if (pair.join("").length > 12 || merges.some((merge) => merge.join() === pair.join())) continue;
    merges.splice(random(merges.length + 1), 0, pair);
    if (!tokens.includes(pair.join(""))) tokens.push(pair.join(""));
  }
  const vocab = Object.fromEntries(["?", ...tokens].map((token, id) => [token, id]));
  const lettersOf = (length: number): string =>
    Array.from({ length }, () => `${letters}x`[random(letters.length + (random(9) === 0 ? 1 : 0))]).join("");
  const word =
    random(2) === 0
      ? lettersOf(9_000)
      : lettersOf(1 + random(40))
          .repeat(9_000)
          .slice(0, 9_000);
  return { config: { type: "BPE", vocab, merges, unk_token: "?", fuse_unk: random(2) === 0 }, word };
}

test("the certain tokens of a start of a word of byte pairs are those of the word, whatever the merges", () => {
  let certain = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const { config, word } = randomPairs(seed);
    const model = wordModelOf(config);
    const whole: number[] = [];
    model.encode(word, whole);
    for (const length of [300, 2_048, 8_192]) {
      const ids: number[] = [];
      model.encodeStart!(word.slice(0, length), ids);
      assert.deepEqual(ids, whole.slice(0, ids.length), `seed ${seed}, ${length} characters`);
      if (ids.length > 0) certain++;
    }
  }
  assert.ok(certain > 90, `of ${certain} of 180 starts the first tokens are certain`);
});

test("of a word of byte pairs whose first tokens follow from its last characters none is certain", () => {
  const letters = Array.from({ length: 9_001 }, (_, i) => String.fromCharCode(0x4e00 + i));
  // The last two characters merge first, and so on to the start: where pairs begin depends on the end.
  const merges = letters.slice(1).map((letter, i) => [letters[i]!, letter] as const);
  const tokens = [...letters, ...merges.map((pair) => pair.join(""))];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const model = wordModelOf({ type: "BPE", vocab, merges: merges.toReversed() });
  for (const [length, first] of [
    [9_000, 2],
    [9_001, 1],
  ] as const) {
    const ids: number[] = [];
    model.encode(letters.slice(0, length).join(""), ids);
    assert.deepEqual([tokens[ids[0]!], ids.length], [letters.slice(0, first).join(""), 4_500 + (length % 2)]);
  }
  const ids: number[] = [];
  model.encodeStart!(letters.join(""), ids);
  assert.deepEqual(ids, []);
});

// With an expression for the spaces at an end each takes many minutes.
test("a type that every object has a property of is refused by name", () => {
  const tokenizer = read(readdirSync(base)[0]!, "tokenizer.json");
  for (const type of ["constructor", "toString"])
    for (const part of ["model", "normalizer", "pre_tokenizer", "post_processor"])
      assert.throws(() => new TextTokenizer({ ...tokenizer, [part]: { ...tokenizer[part], type } }), new RegExp(type));
});

test("a megabyte of spaces or of added tokens is read in one pass", { timeout: 60_000 }, () => {
  const spaces = " ".repeat(1_000_000);
  const strip = (sides: object) => normalizerOf({ type: "Strip", ...sides });
  assert.equal(strip({})(`${spaces}a${spaces}b${spaces}`), `a${spaces}b`);
  assert.equal(strip({ strip_left: false })(`\u3000a\u0085${spaces}`), "\u3000a");
  assert.equal(strip({ strip_right: false })(`\u3000a ${spaces}`), `a ${spaces}`);
  assert.equal(strip({})(spaces), "");
  const mask = { id: 1, content: "<mask>", special: true, lstrip: true, rstrip: true };
  const { raw } = tokenFinders([mask], (text) => text);
  assert.deepEqual(raw(`a${spaces}b${spaces}<mask>${spaces}c`), [{ text: `a${spaces}b` }, { id: 1 }, { text: "c" }]);
  assert.equal(raw("<mask> ".repeat(200_000)).filter((section) => "id" in section).length, 200_000);
});
