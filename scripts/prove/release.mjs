/**
 * `npm run prove -- release [--only managers,runtimes]`, part of `npm run test:release`: publishes both packages to a registry on
 * this machine (verdaccio, which takes everything else from the registry that npm is configured for) and installs them as
 * users do. With npm, pnpm and yarn into empty folders; there, and on Node 20, 22, 24 and 26, Bun and Deno, it runs the
 * README's code, embeds the server, and serves until the first vector.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { machine } from "../../bench/lib/machine.mjs";
import { packTarballs, userEnvironment } from "../lib/tarballs.mjs";
import { installTools } from "../lib/tools.mjs";
import { emptyProject, managersOf } from "./lib/release/managers.mjs";
import { startRegistry } from "./lib/release/registry.mjs";
import { readmeCode, use } from "./lib/release/use.mjs";
import { installRuntimes, nodeVersions } from "./lib/runtimes.mjs";

const { values } = parseArgs({ options: { only: { type: "string", default: "managers,runtimes" } } });
const parts = values.only.split(",");
const folder = mkdtempSync(join(tmpdir(), "sheaf-release-proof-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const caches = join(folder, "caches");

console.log(machine());
// npm has withdrawn the tag by which a part of verdaccio asks for node-fetch.
const tool = step("verdaccio, pnpm and yarn installed", () =>
  installTools(join(folder, "tools"), ["verdaccio@6", "pnpm@10", "@yarnpkg/cli-dist@4"], { "node-fetch": "2" }),
);
const tarballs = await packTarballs(["sheaf", "sheaf-server"], join(folder, "packed"));
const registry = await startRegistry(tool, join(folder, "registry"));
try {
  for (const { path } of tarballs)
    step(`npm publish ${path.slice(path.lastIndexOf("/") + 1)}`, () => registry.publish(path));
  const code = readmeCode();
  const { npm, ...others } = managersOf(tool);
  const project = join(folder, "npm");
  if (parts.includes("managers") || parts.includes("runtimes")) await install("npm", npm, code);
  if (parts.includes("managers"))
    for (const [name, manager] of Object.entries(others)) await install(name, manager, code);
  if (parts.includes("runtimes")) {
    const names = [...nodeVersions.map((version) => `Node ${version}`), "Bun", "Deno"];
    for (const { name, command } of installRuntimes(join(folder, "runtimes"), names).slice(1))
      await attempt(name, async () => {
        const isNode = name.startsWith("Node");
        const sheaf = isNode ? ["node_modules/.bin/sheaf"] : [...command, "node_modules/sheaf-server/bin/sheaf.js"];
        return `first vector ${seconds(await use(project, code, { node: command, sheaf }))} after the start`;
      });
  }
} finally {
  await registry.stop();
}
console.log(process.exitCode ? "\nA step failed." : "\nEvery step worked.");

/** Into an empty folder, with empty caches. */
async function install(name, manager, code) {
  await attempt(`${name}: sheaf and sheaf-server in an empty folder`, async () => {
    const project = join(folder, name);
    emptyProject(project, registry.url, caches);
    const startedAtMs = performance.now();
    shell(project, [...manager.add, "sheaf", "sheaf-server"], 300_000);
    const installed = (performance.now() - startedAtMs) / 1000;
    const vector = await use(project, code, manager);
    return `installed in ${seconds(installed)}, first vector ${seconds(vector)} after the start`;
  });
}

function shell(cwd, [command, ...parameters], timeout) {
  const options = {
    cwd,
    env: userEnvironment(),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout,
  };
  return execFileSync(command, parameters, { ...options, maxBuffer: 2 ** 26 });
}

/** Prints what came of a step; the others go on after one that fails. */
async function attempt(name, work) {
  try {
    console.log(`✔ ${name}: ${await work()}`);
  } catch (error) {
    console.log(`✖ ${name}: ${error.message}\n${error.stdout ?? ""}`);
    process.exitCode = 1;
  }
}

function step(name, work) {
  const startedAtMs = performance.now();
  const result = work();
  console.log(`✔ ${name} (${seconds((performance.now() - startedAtMs) / 1000)})`);
  return result;
}

function seconds(value) {
  return `${value.toFixed(1)} s`;
}
