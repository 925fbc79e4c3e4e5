// `npm run test:release [-- word …]`: what users get and where it runs, before a release: the test files of a release, the
// site, and the proofs whose first lines name this command; with words only those whose path holds one.
import { spawnSync } from "node:child_process";
import { root } from "./lib/files.mjs";
import { isForReleases, namesIn, runAll } from "./lib/named.mjs";
import { commandOf, testFiles } from "./lib/suites.mjs";

const words = process.argv.slice(2);
const isAsked = (path) => words.length === 0 || words.some((word) => path.includes(word));
const failed = [];

const hasFiles = testFiles(words).some((file) => commandOf(file) === "release");
const proofs = namesIn("prove").filter((name) => isForReleases("prove", name) && isAsked(`prove/${name}`));
if (!isAsked("site") && !hasFiles && proofs.length === 0) {
  console.error(`No test of a release has a path that holds ${words.join(" or ")}.`);
  process.exit(1);
}
if (isAsked("site")) {
  step("npm", ["run", "site"]);
  // They share a browser with the tests of the packages.
  step(process.execPath, ["scripts/build.mjs", "--tests"]);
  step("npm", ["test"], `${root}/scripts/site`);
}
if (hasFiles) step(process.execPath, ["scripts/test.mjs", "--only", "release", ...words]);
if (runAll("prove", proofs) !== 0) failed.push("a proof");

if (failed.length > 0) console.error(`✖ ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;

function step(command, parameters, cwd = root) {
  const { status } = spawnSync(command, parameters, { cwd, stdio: "inherit" });
  if (status !== 0) failed.push([command, ...parameters].join(" "));
}
