/**
 * `npm run prove -- seeds [word …]`: the tests of the library that draw their cases, with every seed and load instead of the
 * few that `npm test` has time for. Ten minutes on two cores; with words, only the files whose path holds one.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { root } from "../scripts/lib/files.mjs";
import { testFiles, testOptions } from "../scripts/lib/suites.mjs";

const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);
const files = testFiles(process.argv.slice(2)).filter((file) =>
  readFileSync(file, "utf8").includes("support/seeds.js"),
);
if (files.length === 0) throw new Error("No test file draws its cases.");
const env = { ...process.env, SHEAF_SEEDS: "all" };
const { status } = spawnSync(process.execPath, [...testOptions, ...files], { cwd: root, stdio: "inherit", env });
process.exitCode = status ?? 1;
