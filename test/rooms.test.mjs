import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { inlineCode } from "../scripts/lib/markdown.mjs";

const folders = ["sheaf", "sheaf-server"]
  .flatMap((name) => {
    const src = `${root}/packages/${name}/src`;
    const entries = readdirSync(src, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  })
  .sort();
const named = (folder) => relative(root, folder);

/** A folder with more files than this has rooms inside it. */
const maxFiles = 14;

test("every folder of a package's source opens with a README.md of two sentences", () => {
  assert.ok(folders.length > 50, `only ${folders.length} folders were found`);
  const other = folders.filter((folder) => sentences(readmeOf(folder)) !== 2).map(named);
  assert.deepEqual(other, [], "say in one sentence what belongs there, and in a second one what does not");
});

test("the folders and files that a room's README.md points to exist", () => {
  const dead = folders.flatMap((folder) =>
    inlineCode(readmeOf(folder))
      .filter((text) => /^\.\.?\/|\/$|\.ts$/.test(text) && !existsSync(join(folder, text)))
      .map((text) => `${named(folder)}/README.md: ${text}`),
  );
  assert.deepEqual(dead, []);
});

test(`no folder of a package's source has more than ${maxFiles} files of its own`, () => {
  const full = folders.map(named).filter((folder) => filesOf(join(root, folder)).length > maxFiles);
  assert.deepEqual(full, []);
});

test("two sentences are counted as two, and code is not", () => {
  assert.equal(sentences("What waits. What runs is in `../run.ts`; it is. `a. b`."), 3);
  assert.equal(sentences("One. `../two/` is the other.\n"), 2);
  assert.equal(sentences(""), 0);
});

function readmeOf(folder) {
  const file = join(folder, "README.md");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

function filesOf(folder) {
  return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== "README.md");
}

function sentences(text) {
  return [...text.replaceAll(/`[^`]*`/g, "code").matchAll(/[.!?](?=\s|$)/g)].length;
}
