import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const commands = codeBlocks(read("README.md")).flatMap(({ language, text }) =>
  language === "sh" ? [text.trim()] : [],
);

test("README.md has one command that serves and one that tests, of scripts that exist", () => {
  const { scripts } = JSON.parse(read("package.json"));
  for (const command of ["npm ci && npm start", "npm ci && npm test"]) assert.ok(commands.includes(command), command);
  const named = commands.flatMap((command) => [...command.matchAll(/npm run ([\w-]+)/g)].map(([, name]) => name));
  for (const name of [...named, "start", "test"]) assert.ok(Object.hasOwn(scripts, name), name);
});

test(".ci/run ends with exactly the README's test command", () => {
  assert.equal(read(".ci/run").trim().split("\n").at(-1), "npm ci && npm test");
});
