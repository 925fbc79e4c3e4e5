import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folderTable } from "../../dist/runners/text/folder-table.js";
import { wordModels } from "../../dist/runners/text/tokenizer/models.js";
import { normalizers } from "../../dist/runners/text/tokenizer/normalizers.js";
import { postProcessors } from "../../dist/runners/text/tokenizer/post-processors.js";
import { preTokenizers } from "../../dist/runners/text/tokenizer/pre-tokenizers.js";

const page = readFileSync(new URL("../../../../docs/reference/text-folders.md", import.meta.url), "utf8");

/** The rows of the table under a heading, as lists of cells. */
function rowsUnder(heading: string): string[][] {
  const [, rest = ""] = page.split(`\n## ${heading}\n`);
  const [section = ""] = rest.split("\n## ");
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) => line.slice(1, -1).split("|").map((cell) => cell.trim())); // prettier-ignore
}

test("docs/reference/text-folders.md has every field that is read, with what becomes of it, and no other", () => {
  const headings = [...page.matchAll(/^## `(.*)`$/gmu)].map(([, file]) => file);
  assert.deepEqual(headings, Object.keys(folderTable));
  for (const [file, { fields }] of Object.entries(folderTable)) {
    const expected = Object.entries(fields).map(([name, { use, says }]) => [`\`${name}\``, use, says]);
    assert.deepEqual(rowsUnder(`\`${file}\``), expected, file);
  }
});

test("docs/reference/text-folders.md has every type of a tokenizer's parts, and no other", () => {
  const parts = {
    normalizer: normalizers,
    pre_tokenizer: preTokenizers,
    model: wordModels,
    post_processor: postProcessors,
  };
  const expected = Object.entries(parts).map(([part, types]) => [
    `\`${part}\``,
    Object.keys(types)
      .map((type) => `\`${type}\``)
      .join(", "),
  ]);
  assert.deepEqual(rowsUnder("The tokenizer's types"), expected);
});
