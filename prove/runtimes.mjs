/**
 * `npm run prove -- runtimes`: the built core and the batch endpoint, unchanged, on this Node, on Node 22 and 24, Bun and
 * Deno, all installed from npm into a temporary folder. Fails if one behaviour fails on one of them.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../scripts/lib/files.mjs";
import { installRuntimes } from "./lib/runtimes.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-runtimes-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const runtimes = installRuntimes(folder);
/** Each script with the module that it holds to its behaviours. */
const scripts = [
  ["core-behaviours.mjs", "index.js"],
  ["http-behaviours.mjs", "adapters/http/index.js"],
];

const table = new Map();
for (const { name: runtime, command } of runtimes)
  for (const [script, module] of scripts) run(runtime, command, script, module);

const names = runtimes.map(({ name }) => name);
console.log(`| behaviour | ${names.join(" | ")} |\n| --- |${" --- |".repeat(names.length)}`);
for (const [behaviour, verdicts] of table)
  console.log(`| ${behaviour} | ${names.map((name) => verdicts[name] ?? "–").join(" | ")} |`);

function fail(message) {
  console.error(`✖ ${message}`);
  process.exitCode = 1;
}

function run(runtime, command, script, module) {
  const url = pathToFileURL(`${root}/packages/sheaf/dist/${module}`).href;
  const [binary, ...parameters] = [...command, `${root}/prove/lib/${script}`, url];
  const { stdout, stderr, status } = spawnSync(binary, parameters, { encoding: "utf8", timeout: 60_000 });
  const lines = stdout.trim().split("\n");
  if (status !== 0 || lines.pop() !== "done") fail(`${runtime} ended with ${status}: ${stderr}`);
  for (const line of lines) {
    const [, verdict, behaviour, why] = /^(ok|failed) ([^:]+)(?:: (.*))?$/.exec(line);
    table.set(behaviour, { ...table.get(behaviour), [runtime]: verdict });
    if (verdict !== "ok") fail(`${runtime}: ${behaviour}: ${why}`);
  }
}
