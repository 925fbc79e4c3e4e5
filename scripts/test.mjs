// `npm test [-- word …]`: builds, then runs every test file (or those whose path holds one
// of the words, or whose suite is one of them) in one run.
import { spawnSync } from "node:child_process";
import { filesBelow, root } from "./lib/files.mjs";
import { suiteOf } from "./lib/suites.mjs";

const words = process.argv.slice(2);
const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

// node --test takes no globs on Node 20: list the files.
const files = [
  ...filesBelow("packages/sheaf/dist-test", ".test.js"),
  ...filesBelow("packages/sheaf-server/dist-test", ".test.js"),
  ...filesBelow("test", ".test.mjs"),
].filter((file) => words.length === 0 || words.some((word) => file.includes(word) || suiteOf(file) === word));
if (files.length === 0) {
  console.error(`No test file's path holds ${words.join(" or ")}, nor is it a suite.`);
  process.exit(1);
}

const options = [
  "--test",
  `--test-reporter=${root}/scripts/lib/reporter.mjs`,
  // Two processes: most suites wait for sockets and workers part of the time, and every machine that counts has two cores.
  "--test-concurrency=2",
  // Of a file and of each test in it: a hang fails, with its name, and a crowded machine does not. No forced exit: an open handle is a failure too.
  "--test-timeout=900000",
];
const { status } = spawnSync(process.execPath, [...options, ...files], { cwd: root, stdio: "inherit" });
process.exit(status ?? 1);
