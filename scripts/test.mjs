// `npm test [-- word …]`: builds, then runs every test file (or those whose path holds one
// of the words, or whose suite is one of them) in one run.
import { spawnSync } from "node:child_process";
import { root } from "./lib/files.mjs";
import { testFiles, testOptions } from "./lib/suites.mjs";

const words = process.argv.slice(2);
const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

const files = testFiles(words);
if (files.length === 0) {
  console.error(`No test file's path holds ${words.join(" or ")}, nor is it a suite.`);
  process.exit(1);
}

const { status } = spawnSync(process.execPath, [...testOptions, ...files], { cwd: root, stdio: "inherit" });
process.exit(status ?? 1);
