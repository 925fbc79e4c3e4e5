// The record of the public declarations, and docs/stability.md, are held to the code.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { declarationsFolder, publicDeclarations } from "../scripts/lib/declarations.mjs";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { tableRows } from "../scripts/lib/markdown.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const json = (path) => JSON.parse(read(path));
const page = read("docs/stability.md");

test("the declarations of every entry point are the recorded ones", async () => {
  const recorded = filesBelow(declarationsFolder, ".ts").map((file) =>
    file.slice(`${root}/${declarationsFolder}/`.length),
  );
  const declarations = await publicDeclarations();
  const hint = "If it is meant: node scripts/record.mjs surface, and read the diff.";
  assert.deepEqual(recorded.sort(), Object.keys(declarations).sort(), hint);
  for (const [file, text] of Object.entries(declarations)) {
    const [now, before] = [text, read(`${declarationsFolder}/${file}`)].map((each) => each.split("\n"));
    const changes = [
      ...before.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
      ...now.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
    ];
    assert.ok(now.join() === before.join(), [`${file} has changed. ${hint}`, ...changes].join("\n"));
  }
});

test("functions and classes are marked experimental where docs/stability.md says so, and nowhere else", () => {
  const stated = tableRows(page, "experimental").flatMap(([cell]) => cell.replaceAll("`", "").split(", "));
  for (const file of filesBelow(declarationsFolder, ".d.ts")) {
    const specifier = file.slice(`${root}/${declarationsFolder}/`.length, -".d.ts".length);
    const declared = /(\/\*\* @experimental .*\n)?export declare (?:function|class|const) (\w+)/g;
    for (const [, mark, name] of readFileSync(file, "utf8").matchAll(declared))
      assert.equal(mark !== undefined, stated.includes(specifier) || stated.includes(name), `${specifier} ${name}`);
  }
});

test("docs/stability.md has a row for every version of Node that the packages allow, in the words of `engines`", () => {
  const stated = tableRows(page, "Node").map(([range]) => range);
  for (const name of ["sheaf", "sheaf-server"]) {
    const { engines } = json(`packages/${name}/package.json`);
    assert.deepEqual(stated.map((range) => `${range}.0`), engines.node.split(" || ")); // prettier-ignore
  }
  for (const [range, endOfLife] of tableRows(page, "Node")) assert.match(endOfLife, /^20\d\d-\d\d-\d\d$/, range);
});
