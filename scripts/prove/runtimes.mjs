/**
 * `npm run prove -- runtimes [--only workerd]`, part of `npm run test:release`: the built core and the batch endpoint, unchanged, on this Node, on Node 22, 24 and 26, Bun,
 * Deno and Cloudflare's workerd, all installed from npm into a temporary folder; in workerd also requests one after
 * another. Fails if one behaviour fails on one of them.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root } from "../lib/files.mjs";
import { outcomesOf } from "./lib/behaviours.mjs";
import { installRuntimes } from "./lib/runtimes.mjs";
import { behavioursOf as workerdBehaviours } from "./lib/workerd-behaviours.mjs";
import { startWorkerd } from "./lib/workerd.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-runtimes-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const { values } = parseArgs({ options: { only: { type: "string" } } });
const runtimes = installRuntimes(folder, values.only?.split(","));
/** The module that each script holds to its behaviours. */
const scripts = [
  ["core-behaviours.mjs", "index.js"],
  ["http-behaviours.mjs", "adapters/http.js"],
];

const table = new Map();
for (const { name: runtime, command } of runtimes) {
  if (runtime.startsWith("workerd")) await runWorkerd(runtime, command[0]);
  else for (const [script, module] of scripts) run(runtime, command, script, module);
}

const names = runtimes.map(({ name }) => name);
console.log(`| behaviour | ${names.join(" | ")} |\n| --- |${" --- |".repeat(names.length)}`);
for (const [behaviour, verdicts] of table)
  console.log(`| ${behaviour} | ${names.map((name) => verdicts[name] ?? "–").join(" | ")} |`);

function fail(message) {
  console.error(`✖ ${message}`);
  process.exitCode = 1;
}

function run(runtime, command, script, module) {
  const [runner, behaviours] = ["run-behaviours.mjs", script].map((name) => `${root}/scripts/prove/lib/${name}`);
  const url = pathToFileURL(`${root}/packages/sheaf/lib/${module}`).href;
  const [binary, ...parameters] = [...command, runner, pathToFileURL(behaviours).href, url];
  const { stdout, stderr, status } = spawnSync(binary, parameters, { encoding: "utf8", timeout: 60_000 });
  if (status !== 0) fail(`${runtime} ended with ${status}: ${stderr}`);
  else note(runtime, JSON.parse(stdout));
}

/** One request runs all of a script there; the others check what happens to a batcher from request to request. */
async function runWorkerd(runtime, binary) {
  const workerd = await startWorkerd(binary, folder);
  const ask = async (path) => {
    const response = await fetch(`${workerd.url}/${path}`, { signal: AbortSignal.timeout(60_000) });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()} ${workerd.log()}`);
    return response.json();
  };
  try {
    for (const path of ["core", "http"]) note(runtime, await ask(path));
    note(runtime, await outcomesOf(workerdBehaviours(ask)));
  } finally {
    await workerd.stop();
  }
}

function note(runtime, outcomes) {
  for (const { behaviour, verdict, why } of outcomes) {
    table.set(behaviour, { ...table.get(behaviour), [runtime]: verdict });
    if (verdict !== "ok") fail(`${runtime}: ${behaviour}: ${why}`);
  }
}
