import assert from "node:assert/strict";
import { test } from "node:test";
import { seams, unigramTokenizer } from "../../dist/runners/text/unigram-tokenizer.js";
import { readPieces } from "../../dist/runners/use-lite/package.js";
import { useLiteReference } from "./use-lite-reference.js";

const pieces = readPieces();
const tokenizer = unigramTokenizer(pieces, 6);

test("every reference text is cut into the reference's token ids", () => {
  for (const { text, ids } of useLiteReference) {
    assert.deepEqual(tokenizer.encode(text), ids, JSON.stringify(text.slice(0, 60)));
  }
});

test("a text with no token is one unknown token", () => {
  assert.deepEqual(tokenizer.encode(""), [0]);
});

test("a position inside a piece that nothing else reaches counts as unknown at score 0, as in the reference", () => {
  const pieces = (y: number): [string, number][] => [["<unk>", 0], ["\u2581", -1], ["xy", -2], ["y", y]]; // prettier-ignore
  assert.deepEqual(unigramTokenizer(pieces(-4), 1).encode("xy"), [1, 2]);
  assert.deepEqual(unigramTokenizer(pieces(-2.5), 1).encode("xy"), [1, 0, 3]);
  assert.deepEqual(unigramTokenizer(pieces(-4), 1).encode("xz"), [1, 0]);
});

test("reserved pieces are never produced", () => {
  assert.deepEqual(tokenizer.encode("<s>").includes(1), false);
  assert.deepEqual(tokenizer.encode("extra_token_id_1").includes(3), false);
});

test("of two segmentations the likelier one is chosen, of equals the one with the shorter last piece", () => {
  const pieces = Object.entries({ "<unk>": 0, "\u2581": -1, a: -2, b: -2, ab: -3, c: -2, bc: -4 });
  const small = unigramTokenizer(pieces, 1);
  assert.deepEqual(small.encode("ab"), [1, 4]);
  assert.deepEqual(small.encode("bc"), [1, 3, 5]);
});

test("a long text is read until its first tokens are certain, which are those of the whole", () => {
  const reference = useLiteReference.map(({ text }) => text);
  const texts = [
    reference.join(" "),
    reference.join(""),
    "the cat sits outside and waits ".repeat(1_000),
    "Y2F0IHNpdHM".repeat(3_000),
    "a".repeat(30_000),
    " ".repeat(30_000),
    "\u6F22x".repeat(15_000),
    "\uFDFA".repeat(30_000),
    "e\u0301".repeat(15_000),
    "a\u1112\u1161\u11AB".repeat(7_500),
  ];
  for (const [i, text] of texts.entries()) {
    const whole = tokenizer.encode(text);
    for (const most of [1, 128, 700]) {
      const ids = tokenizer.encode(text, most);
      assert.deepEqual(ids, whole.slice(0, ids.length), `text ${i}, ${most} tokens`);
      assert.ok(ids.length > most || ids.length === whole.length, `text ${i}, ${most} tokens`);
      // Of one letter again and again, where its pieces begin depends on its end.
      const isSettled = i >= 2 && !text.startsWith("aaa");
      assert.ok(!isSettled || ids.length < whole.length / 4, `text ${i}: ${ids.length} of ${whole.length} tokens`);
    }
  }
});

test("the work grows with the text's length, not with its square", () => {
  // 100,000 characters at the cost of a square would take minutes; the reference takes 1,000 characters as far as this.
  assert.ok(tokenizer.encode("word ".repeat(20_000)).length > 19_000);
  assert.equal(tokenizer.encode("a".repeat(100_000)).length > 1, true);
  assert.deepEqual(tokenizer.encode("\u{1f642}".repeat(50_000)), [30, 0]);
});

test("a start ends only where Unicode's normal form of the rest changes nothing before it", () => {
  const before = ["e", "e\u0301", "\u1112", "\uD558", "\u30AB", "\u0915", "\u0627", "\u{16D63}", " ", "\uFF76"];
  const normals = before.map((text) => text.normalize("NFKC"));
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code);
    seams.lastIndex = 0;
    if (!seams.test(character) || (code >= 0xd800 && code < 0xe000)) continue;
    const normal = character.normalize("NFKC");
    for (const [i, text] of before.entries())
      if ((text + character).normalize("NFKC") !== normals[i] + normal)
        assert.fail(`${text} before ${code.toString(16)}`);
  }
});
