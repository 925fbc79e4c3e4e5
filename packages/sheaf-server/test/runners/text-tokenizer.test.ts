import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
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
        const { ids, truncated } = tokenizer.encode(text, most);
        assert.equal(truncated, whole.length > most, `text ${i}, ${most} tokens`);
        const own = most - special;
        const [before] = [whole.findIndex((id, place) => id !== ids[place])];
        assert.ok(ids.length <= most && (before === -1 || before >= Math.min(own, whole.length - special)), `text ${i}, ${most} tokens`); // prettier-ignore
      }
    }
  });
