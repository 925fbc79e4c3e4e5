import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { tokenFinders } from "../../dist/runners/text/tokenizer/added-tokens.js";
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
