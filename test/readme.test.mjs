// README.md's TypeScript is run by test/docs.test.mjs, what needs the installed packages by test/tarballs.test.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { codeBlocks, proseOf } from "../scripts/lib/markdown.mjs";
import { readmeSteps } from "../scripts/lib/readme.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const steps = readmeSteps();

test("README.md is at most 120 lines, and read aloud in two minutes: at most 330 words outside code and tables", () => {
  assert.ok(read("README.md").trimEnd().split("\n").length <= 120);
  const spoken = proseOf(read("README.md")).flatMap(({ text }) => text.match(/\p{L}\S*|\d\S*/gu) ?? []);
  assert.ok(spoken.length > 200 && spoken.length <= 330, `${spoken.length} words`);
});

test("README.md has one command that serves, one that installs and one that tests, and asks and measures", () => {
  const count = (kind) => steps.filter((step) => step.kind === kind).length;
  assert.deepEqual(["serve", "install", "test"].map(count), [1, 1, 1]);
  assert.ok(count("ask") > 0 && count("sheaf") > 0);
});

test("a shell block of README.md that no test would run is refused", () => {
  assert.throws(
    () => readmeSteps("```sh\nnpm install something\n```\n"),
    /no test runs this block.*\nnpm install something/,
  );
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
