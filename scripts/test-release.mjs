// `npm run test:release [-- word …]`: what users get and where it runs, before a release: the test files of a release, the
// site, and the proofs whose first lines name this command; with words only those whose path holds one.
import { spawnSync } from "node:child_process";
import { root } from "./lib/files.mjs";
import { isForReleases, namesIn, runAll } from "./lib/named.mjs";
import { commandOf, testFiles } from "./lib/suites.mjs";

// Without words the empty one, which every path holds.
const words = process.argv.length > 2 ? process.argv.slice(2) : [""];
const failed = [];
const hasFile = (word) => testFiles([word]).some((file) => commandOf(file) === "release");
const proofsOf = (word) =>
  namesIn("prove").filter((name) => isForReleases("prove", name) && `prove/${name}`.includes(word));

for (const word of words) {
  if ("site".includes(word) || hasFile(word) || proofsOf(word).length > 0) continue;
  console.error(`No test of a release has a path that holds ${word}.`);
  process.exit(1);
}
if (words.some((word) => "site".includes(word))) {
  step("npm", ["run", "site"]);
  // They share a browser with the tests of the packages.
  step(process.execPath, ["scripts/build.mjs", "--tests"]);
  step("npm", ["test"], `${root}/scripts/site`);
}
const ofFiles = words.filter(hasFile);
if (ofFiles.length > 0) step(process.execPath, ["scripts/test.mjs", "--only", "release", ...ofFiles]);
if (runAll("prove", [...new Set(words.flatMap(proofsOf))]) !== 0) failed.push("a proof");

if (failed.length > 0) console.error(`✖ ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;

function step(command, parameters, cwd = root) {
  const { status } = spawnSync(command, parameters, { cwd, stdio: "inherit" });
  if (status !== 0) failed.push([command, ...parameters].join(" "));
}
