import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "tokenizers";
import { TextTokenizer, type Encoding } from "../../dist/runners/text/tokenizer.js";

const base = fileURLToPath(new URL("../../test/fixtures/text-folders", import.meta.url));
const read = (name: string, file: string): any => JSON.parse(readFileSync(join(base, name, file), "utf8"));
const sides = ["right", "left"] as const;
const hundred = (one: (i: number) => string, separator: string): string => Array.from({ length: 100 }, (_, i) => one(i)).join(separator); // prettier-ignore

for (const name of readdirSync(base))
  test(`${name}: texts have the tokens of the library, which reads and cuts the whole text`, async () => {
    const file = read(name, "tokenizer.json");
    const tokenizer = await TextTokenizer.open(file);
    const odd = (read(name, "expected.json").texts as unknown[]).flatMap((text) =>
      typeof text === "string" ? [text] : [],
    );
    const texts = [
      ...odd,
      [...odd, ...odd].join(" "),
      odd.join("x 1"),
      "the cat sits outside and waits ".repeat(700),
      "\u6F22\u5B57\u6587 ".repeat(10) + "\u6F22\u5B57\u6587".repeat(5000),
      "Y2F0IHNpdHM".repeat(2000),
      hundred((i) => `word${i}`, " ".repeat(80)),
      hundred((i) => "abcdefghij".repeat(20).slice(i, 200), " "),
      hundred(() => "the cat sits [MASK] <mask>outside", " "),
    ];
    for (const side of sides)
      for (const most of [tokenizer.specialTokens(false), 4, 16, 300, 3000]) {
        const library = Tokenizer.fromString(JSON.stringify({ ...file, truncation: null, padding: null }));
        const whole = await library.encodeBatch(texts);
        library.setTruncation(most, { direction: side });
        const cut = await library.encodeBatch(texts);
        const encoded = await tokenizer.encode(texts.map((text) => ({ text, side })), most); // prettier-ignore
        for (const [i, encoding] of encoded.entries()) {
          const what = `text ${i}, ${most} tokens, ${side}`;
          assert.ok(!(encoding instanceof Error), what);
          const { ids, types, truncated, textTokens = 0, isReadWhole } = encoding;
          assert.deepEqual([ids, types], [cut[i]!.getIds(), cut[i]!.getTypeIds()], what);
          const length = whole[i]!.getLength();
          assert.equal(truncated, length > most, what);
          const isCounted = isReadWhole === true ? textTokens === length : textTokens > most && textTokens <= length;
          assert.ok(!truncated || isCounted, `${what}: ${textTokens} of ${length}`);
        }
      }
  });

test("a long text of words is read up to where it has enough tokens", async () => {
  for (const name of ["bert-cls", "qwen3", "xlmr"]) {
    const tokenizer = await TextTokenizer.open(read(name, "tokenizer.json"));
    const [encoding] = await tokenizer.encode([{ text: "the cat sits outside and waits ".repeat(20_000) }], 32);
    assert.ok(!(encoding instanceof Error) && encoding?.isReadWhole === false && encoding.textTokens! < 2_000, name);
  }
});

const kinds = { spaces: " ", letters: "a", digits: "7", breaks: "\n" };

test("20 million spaces, letters, digits or line breaks are refused before the library, which they would end", async () => {
  for (const name of ["bert-cls", "modernbert", "qwen3", "xlmr"]) {
    const tokenizer = await TextTokenizer.open(read(name, "tokenizer.json"));
    for (const kind of Object.values(kinds))
      for (const side of sides) {
        const text = `${kind.repeat(20_000_000)}\u00DF`;
        const encoded = await tokenizer.encode([{ text, side }, { text: "cat", query: text }, { text: "cat" }], 16);
        for (const refused of encoded.slice(0, 2))
          assert.ok(refused instanceof Error && refused.message.startsWith("it has more than 1000000 characters"));
        assert.ok(!(encoded[2] instanceof Error));
      }
  }
});

// The patterns of Qwen try the most again.
test("the longest texts that are read end nothing, at both sides", async () => {
  const tokenizer = await TextTokenizer.open(read("qwen3", "tokenizer.json"));
  for (const kind of Object.values(kinds)) {
    const text = `${kind.repeat(999_999)}\u00DF`;
    const encoded = await tokenizer.encode(sides.map((side) => ({ text, side })), 16); // prettier-ignore
    for (const encoding of encoded) assert.ok(!(encoding instanceof Error) && encoding.ids.length === 16);
  }
});

test("an added token is found also where a text that is not read to its end would end in it", async () => {
  const file = read("bert-cls", "tokenizer.json");
  const id = Object.keys(file.model.vocab).length;
  const added = { id, content: "newyorkers inthecity", single_word: false, lstrip: false, rstrip: false, normalized: true, special: false }; // prettier-ignore
  const tokenizer = await TextTokenizer.open({ ...file, added_tokens: [...file.added_tokens, added] });
  const text = `${"x".repeat(240)} newyorkers inthecity ${"the cat sits ".repeat(40)}`;
  const most = tokenizer.specialTokens(false) + 3;
  const [start] = await tokenizer.encode([{ text }], most);
  const [whole] = await tokenizer.encode([{ text }], 10_000);
  assert.ok(!(start instanceof Error) && !(whole instanceof Error) && whole!.ids.includes(id));
  assert.deepEqual(start!.ids.slice(0, most - 1), whole!.ids.slice(0, most - 1));
});

test("a text that the vocabulary has no token for fails alone", async () => {
  const model = { type: "WordLevel", vocab: { cat: 0 }, unk_token: "[UNK]" };
  const tokenizer = await TextTokenizer.open({ version: "1.0", added_tokens: [], model });
  const [cat, dog] = await tokenizer.encode([{ text: "cat" }, { text: "dog" }], 4);
  assert.deepEqual((cat as Encoding).ids, [0]);
  assert.match((dog as Error).message, /Missing \[UNK\] token/);
});
