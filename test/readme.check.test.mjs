// README.md's TypeScript is run by test/docs.check.test.mjs, what needs the installed packages by test/tarballs.release.test.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";
import { readmeSteps } from "../scripts/lib/readme.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const steps = readmeSteps();

test("README.md has one command that serves, one that installs and one that tests, and asks", () => {
  const count = (kind) => steps.filter((step) => step.kind === kind).length;
  assert.deepEqual(["serve", "install", "test"].map(count), [1, 1, 1]);
  assert.ok(count("ask") > 0);
});

test("every other block of README.md is TypeScript, or the output of what is before it", () => {
  const languages = codeBlocks(read("README.md")).map(({ language, words }) => [language, ...words].join(" "));
  const others = languages.filter((name) => !["sh", "ts", "ts run", "text output"].includes(name));
  assert.deepEqual(others, []);
});

test(".ci/run ends with exactly the README's test command", () => {
  const { command } = steps.find(({ kind }) => kind === "test");
  assert.equal(read(".ci/run").trim().split("\n").at(-1), command);
});
