// `npm test`: builds, then runs the quick tests. `npm run test:e2e`, `npm run test:release` and `npm test` in test/integration/ run
// theirs (`--only`), and with words each runs only the test files whose path holds one, or whose suite is one; `npm test -- word`
// looks among all of them but integration's.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { root } from "./lib/files.mjs";
import { runTests } from "./lib/run-tests.mjs";
import { commandOf, grouped, integrationFiles, testFiles } from "./lib/suites.mjs";

const { values, positionals: words } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const command = values.only ?? (words.length === 0 ? "test" : undefined);

const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

const filesOf = (asked) =>
  (command === "integration" ? integrationFiles : testFiles)(asked).filter(
    (file) => command === undefined || commandOf(file) === command,
  );
const files = filesOf(words);
for (const word of words) {
  if (filesOf([word]).length > 0) continue;
  console.error(`No test file's path holds ${word}, nor is it a suite.`);
  process.exit(1);
}

const isQuick = files.every((file) => commandOf(file) === "test");
process.exit((await runTests(isQuick ? grouped(files) : files)) ? 0 : 1);
