import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folderTable } from "../../dist/runners/text/folder-table.js";

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
