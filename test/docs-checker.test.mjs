// The checks of the documents fail where they should: one test for each way a document can be wrong.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { commandLines, staleCommandLines } from "../scripts/lib/command-lines.mjs";
import { flagsOf } from "../scripts/lib/commands.mjs";
import { deadLinks, differences, differencesOfCommands } from "../scripts/lib/docs.mjs";
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

const { newCommand } = await import("../packages/sheaf-server/dist/cli/shared/command.js");
const { commandWithSettings } = await import("../packages/sheaf-server/dist/cli/shared/setting-options.js");
const bench = flagsOf(
  newCommand("bench", process)
    .option("--rate <n>", "mean requests per second", Number, 100)
    .option("--seen <names>", "comma-separated", String, ["a", "b"])
    .option("--duration <time>", "of a run", Number, 10_000)
    .option("--budget <time>", "(default: none)")
    .option("--header <text>", "may be given several times", String, [])
    .option("--port <n>", "not the setting of that name", Number, 80)
    .option("--json", "results as JSON"),
);

test("a command gives its flags and their defaults as its help shows them, settings apart", () => {
  assert.deepEqual(
    [...bench.flags],
    [
      ["--rate <n>", "100"],
      ["--seen <names>", "a,b"],
      ["--duration <time>", "10s"],
      ["--budget <time>", undefined],
      ["--header <text>", undefined],
      ["--port <n>", "80"],
      ["--json", undefined],
    ],
  );
  const isShown = ({ env }) => env === "PORT" || env === "WORKERS";
  const serve = flagsOf(commandWithSettings("serve", "Serves.", process, { isShown }));
  assert.deepEqual([...serve.flags.keys()], ["--config <file>"]);
  assert.deepEqual(new Map(serve.settings), new Map([["--port", "PORT"], ["--workers", "WORKERS"]])); // prettier-ignore
});

test("a flag or command that is missing in the document or in the help, and a flag's wrong default, are differences", () => {
  const page = (rate) => `
## \`sheaf bench [target]\`

| flag | default | meaning |
| ---- | ------- | ------- |
| \`--rate <n>\` | \`${rate}\` | |
| \`--seen <names>\` | \`a,b\` | |
| \`--duration <time>\` | \`10s\` | |
| \`--budget <time>\`, \`--header <text>\` | none | |
| \`--port <n>\` | \`80\` | |
| \`--json\` | off | |
`;
  const commands = new Map([["bench", bench.flags]]);
  assert.deepEqual(differencesOfCommands(page(100), commands), []);
  assert.deepEqual(differencesOfCommands(page(50), commands), [
    `sheaf bench: --rate <n> has the default "100", documented is 50`,
  ]);
  const more = new Map([...commands, ["proxy", new Map()]]);
  assert.deepEqual(differencesOfCommands(page(100), more), ["sheaf proxy has no section"]);
  assert.deepEqual(differencesOfCommands(page(100), new Map()), ["there is no command bench"]);
  const fewer = new Map([["bench", new Map([...bench.flags, ["--new", undefined]])]]);
  fewer.get("bench").delete("--json");
  assert.deepEqual(differencesOfCommands(page(100), fewer), [
    "sheaf bench: --new is not documented",
    "sheaf bench: --json is documented but does not exist",
  ]);
});

test("a command line with a command, flag, script, bench or proof that does not exist is stale", () => {
  const markdown = `Measured by \`npm run bench -- gone --rounds 3\`, \`npm run bench -- core --rounds 3\`,
    \`npm run prove -- gone\`, \`npm run bench -- core --no-such\`, \`npm run gone\` and \`sheaf COMMAND --help\`.
\`\`\`sh
MAX_WAIT_MS=5 npx sheaf bench --rate 5 \\
  --port 80 --no-such x && sheaf gone # sheaf also-gone
\`\`\`
\`\`\`js
"sheaf nowhere"
\`\`\`\n`;
  assert.equal(commandLines(markdown).length, 8);
  assert.deepEqual(staleCommandLines(markdown, new Map([["bench", bench]])), [
    "sheaf bench has no --no-such: sheaf bench --rate 5 --port 80 --no-such x",
    "there is no command sheaf gone: sheaf gone",
    "there is no bench/gone.mjs: npm run bench -- gone --rounds 3",
    "there is no prove/gone.mjs: npm run prove -- gone",
    "bench/core.mjs does not know --no-such: npm run bench -- core --no-such",
    "package.json has no script gone: npm run gone",
  ]);
});

test("a dead link is found, to a file or to a heading; a link in code does not count", () => {
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

  // JavaScript: what only an annotation could say is let pass, a name or an option that does not exist is not.
  const script = (option) =>
    block(`import { workerThread } from "sheaf/node";\nworkerThread(new URL("./a.js", import.meta.url), { ${option} });\nconst f = (a) => a;`, "js"); // prettier-ignore
  writeFileSync(file, script("instances: 2") + script("copies: 2"));
  const scripts = compileSnippets(snippets([file], "js"), join(folder, "js"));
  assert.match(scripts.messages, /^\S+page-md-line-8\.js[^]*'copies' does not exist/);
  assert.equal(scripts.messages.match(/page-md-line/g).length, 1);
});
