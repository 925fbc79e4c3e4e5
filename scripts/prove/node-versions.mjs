/**
 * `npm run prove -- node-versions [--versions 20,22,24,26] [word …]`, part of `npm run test:release`: the suites of both packages on the versions of Node
 * that `engines` names, installed from npm into a temporary folder; with words, only the test files whose path holds one.
 * First it shows that the flags of the command bound the heaps there. A quarter of an hour a version on two cores.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../lib/files.mjs";
import { testFiles, testOptions } from "../lib/suites.mjs";
import { userEnvironment } from "../lib/tarballs.mjs";
import { installRuntimes, nodeVersions } from "./lib/runtimes.mjs";

const { values, positionals } = parseArgs({
  options: { versions: { type: "string", default: nodeVersions.join(",") } },
  allowPositionals: true,
});
const folder = mkdtempSync(join(tmpdir(), "sheaf-node-versions-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);
const files = testFiles(positionals.length > 0 ? positionals : ["packages/"]);
if (files.length === 0) throw new Error(`No test file's path holds ${positionals.join(" or ")}`);

const names = values.versions.split(",").map((version) => `Node ${version}`);
const rows = [];
for (const { name, command } of installRuntimes(folder, names).slice(1)) {
  const [node] = command;
  console.log(`\n# ${name}, ${files.length} test files`);
  const env = { ...userEnvironment(), PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const heaps = heapsOf(node, env);
  const startedAtMs = performance.now();
  const { status } = spawnSync(node, [...testOptions, ...files], { cwd: root, env, stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
  rows.push([
    name,
    status === 0 ? "all pass" : "failed",
    `${Math.round((performance.now() - startedAtMs) / 1000)} s`,
    heaps,
  ]);
}
console.log("\n| Node | suites | took | young heap under churn: with flags, in a worker |\n| --- | --- | --- | --- |");
for (const row of rows) console.log(`| ${row.join(" | ")} |`);

/** With the flags of bin/sheaf.js the young heap stays within three semi-spaces and a quarter, in a worker too. */
function heapsOf(node, env) {
  const [shebang] = readFileSync(`${root}/packages/sheaf-server/bin/sheaf.js`, "utf8").split("\n");
  const script = `${root}/scripts/prove/lib/young-heap.mjs`;
  const flags = shebang.match(/--[\w-]+=\S+/g);
  // The least of three: on a crowded machine V8 now and then has a semi-space more for a moment.
  const heaps = [1, 2, 3].map(() =>
    JSON.parse(execFileSync(node, [...flags, script], { env, encoding: "utf8", timeout: 60_000 })),
  );
  const [main, worker] = ["main", "worker"].map((name) => Math.min(...heaps.map((heap) => heap[name])));
  if (main > 3.25 * 8 || worker > 3.25 * 2) throw new Error(`the flags do not hold: ${JSON.stringify(heaps)}`);
  return `${main.toFixed(0)} MiB, ${worker.toFixed(0)} MiB`;
}
