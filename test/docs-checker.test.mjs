// The checks of the documents fail where they should: one test for each way a document can be wrong.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { deadLinks, differences } from "../scripts/lib/docs.mjs";
import { root } from "../scripts/lib/files.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";
import { complaintOnRun, compileSnippets, snippets } from "../scripts/lib/snippets.mjs";

const table = `
| option | default | meaning |
| ------ | ------- | ------- |
| \`size\` | \`10,000\` | most items |
| \`mode\` | \`"sum"\` or what you give | a \\| b |
| \`slots\` | the executor's; \`4\` for a function | |
| \`policy\` | \`auto()\` | |
| \`waitMs\` | none | |
`;
const actual = new Map([
  ["size", 10_000],
  ["mode", "sum"],
  ["slots", 4],
  ["policy", undefined],
  ["waitMs", undefined],
]);
const changed = (name, value) => differences(table, "option", new Map(actual).set(name, value));

test("a document that says what the code says has no differences", () => {
  assert.deepEqual(differences(table, "option", actual), []);
});

test("a wrong default is a difference", () => {
  assert.deepEqual(changed("size", 1_000), ["size has the default 1000, documented is 10,000"]);
  assert.deepEqual(changed("mode", "padded"), [`mode has the default "padded", documented is "sum"`]);
  assert.deepEqual(changed("size", undefined), ["size has no default, documented is 10,000"]);
  assert.deepEqual(changed("waitMs", 5), ["waitMs has the default 5, documented is none"]);
});

test("a name that is missing in the document, or in the code, is a difference", () => {
  assert.deepEqual(changed("NEW_CODE", undefined), ["NEW_CODE is not documented"]);
  const without = new Map(actual);
  without.delete("policy");
  assert.deepEqual(differences(table, "option", without), ["policy is documented but does not exist"]);
  assert.deepEqual(differences(table + table, "option", actual).length, actual.size);
});

test("a table under another heading does not count", () => {
  assert.deepEqual(differences(table, "code", new Map([["size", undefined]])), ["size is not documented"]);
});

test("a dead link is found, to a file or to a heading; a link in code is none", () => {
  const markdown = `# One title\n[a](docs/nowhere.md) [b](#one-title) [c](#no-title) [d](https://example.org/x)
    ![e](nothing.png) [f](package.json "the file")\n\`[g](also-nothing.md)\`\n\`\`\`md\n[h](nor-this.md)\n\`\`\`\n[i]: gone.md`;
  const file = join(root, "README.md");
  const dead = ["docs/nowhere.md", "#no-title", "nothing.png", "gone.md"];
  assert.deepEqual(deadLinks(file, markdown), dead.map((target) => `README.md: dead link ${target}`)); // prettier-ignore
});

test("code blocks carry their language, words, line, prelude and the output that follows", () => {
  const markdown =
    "Text\n\n<!-- ts: declare const a: number; -->\n\n```ts run\nconsole.log(a);\n```\n\n```text output\n1\n```\n\n```sh\nls\n```\n";
  const [first, , third] = codeBlocks(markdown);
  assert.deepEqual(first, {
    language: "ts",
    words: ["run"],
    text: "console.log(a);\n",
    line: 6,
    prelude: " declare const a: number; ",
    output: "1\n",
  });
  assert.equal(third.output, undefined);
});

test("a stale snippet does not compile, does not run, or prints something else", () => {
  mkdirSync(join(root, "artifacts"), { recursive: true });
  const folder = mkdtempSync(join(root, "artifacts/checker-"));
  after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "page.md");
  const block = (text, info = "ts") => `\`\`\`${info}\n${text}\n\`\`\`\n\n`;
  const good = `import { BatcherError } from "sheaf";\nconsole.log(new BatcherError("CLOSED", "no").code);`;
  writeFileSync(
    file,
    block(good, "ts run") +
      block("CLOSED", "text output") +
      block(good, "ts run") +
      block("OPEN", "text output") +
      block(`throw new Error("stale");`, "ts run"),
  );
  const running = snippets([file]);
  const compiled = compileSnippets(running, join(folder, "good"));
  assert.ok(compiled.ok, compiled.messages);
  const complaints = running.map((snippet, index) => complaintOnRun(snippet, compiled.files[index]));
  assert.equal(complaints[0], undefined);
  assert.match(complaints[1], /printed\nCLOSED\nbut the document says\nOPEN/);
  assert.match(complaints[2], /Error: stale/);

  writeFileSync(file, block(`import { noSuchName } from "sheaf";`) + block(`const size: number = "32";`));
  const stale = compileSnippets(snippets([file]), join(folder, "stale"));
  assert.ok(!stale.ok);
  assert.match(stale.messages, /page-md-line-2\.ts.*noSuchName[^]*page-md-line-6\.ts.*not assignable to type 'number'/);
});
