/**
 * `npm run prove -- newcomer [--without-tests]`, part of `npm run test:release`: what README.md tells a newcomer to type, typed, with no environment but PATH
 * and HOME: every shell block in a fresh clone, then the packed tarballs in an empty project: the README's TypeScript, the
 * server and its commands, those of the guide's first page on measuring too. Prints each step with its outcome and its seconds, and fails if one fails. Port 8000, the
 * README's, must be free. About a quarter of an hour with the test command, three minutes without.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { readmeSteps, sheafSteps } from "../scripts/lib/readme.mjs";
import { until } from "../test/support/serving.mjs";
import { compileSnippets, complaintOnRun, snippets } from "../scripts/lib/snippets.mjs";

const { values } = parseArgs({ options: { "without-tests": { type: "boolean", default: false } } });
const folder = mkdtempSync(join(tmpdir(), "sheaf-newcomer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const env = { PATH: process.env.PATH, HOME: process.env.HOME };
const readyUrl = "http://localhost:8000/readyz";
assert.equal(await fetch(readyUrl).catch(() => undefined), undefined, "port 8000 must be free");

const steps = readmeSteps();
const clone = join(folder, "clone");
console.log(`# A fresh clone, Node ${process.versions.node}`);
execFileSync("git", ["clone", "--quiet", root, clone]);
const serve = steps.find(({ kind }) => kind === "serve");
await whileServing(clone, serve.command, () => {
  for (const { command } of steps.filter(({ kind }) => kind === "ask")) ask(clone, command);
});
for (const step of sheafSteps()) shell(clone, step);
shell(clone, { command: "npm pack -w sheaf -w sheaf-server" });

const project = join(folder, "project");
mkdirSync(project);
writeFileSync(join(project, "package.json"), JSON.stringify({ name: "newcomer", private: true, type: "module" }));
const tarballs = readdirSync(clone).filter((name) => name.endsWith(".tgz"));
assert.equal(tarballs.length, 2, tarballs.join());
for (const name of tarballs) copyFileSync(join(clone, name), join(project, name));
console.log("\n# An empty project");
const install = `ONNXRUNTIME_NODE_INSTALL=skip npm install ${tarballs.map((name) => `./${name}`).join(" ")}`;
shell(project, { command: install });
runTypeScript();
await whileServing(project, "npx sheaf serve", () => {
  for (const { command } of steps.filter(({ kind }) => kind === "ask")) ask(project, command);
});
for (const step of sheafSteps()) shell(project, step);

if (!values["without-tests"]) {
  console.log("\n# The test command, in the clone");
  shell(clone, steps.find(({ kind }) => kind === "test")); // prettier-ignore
}
console.log(process.exitCode ? "\nA step failed." : "\nEvery step worked.");

/** Starts a command that serves, waits until it is ready, and ends it as Ctrl-C does. */
async function whileServing(cwd, command, act) {
  const startedAtMs = performance.now();
  // A process group of its own: npm does not pass SIGTERM on to what its script started.
  const server = spawn("sh", ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => server.once("exit", resolve));
  try {
    await until(async () => (await fetch(readyUrl)).ok, exited, 300);
    said(command, startedAtMs, "ready");
    act();
  } finally {
    process.kill(-Number(server.pid), "SIGINT");
  }
  await exited;
  await until(async () => !(await fetch(readyUrl).catch(() => ({ ok: false }))).ok, new Promise(() => undefined), 30);
}

function ask(cwd, command) {
  const startedAtMs = performance.now();
  const { stdout, status, stderr } = spawnSync("sh", ["-c", command], { cwd, env, encoding: "utf8", timeout: 60_000 });
  if (status !== 0) return failed(command, startedAtMs, stderr);
  const vectors = JSON.parse(stdout).data?.map(({ embedding }) => embedding) ?? [];
  const lengths = vectors.map((vector) => `${vector.length} numbers of length ${Math.hypot(...vector).toFixed(4)}`);
  if (lengths.length === 0) return failed(command, startedAtMs, stdout);
  said(command, startedAtMs, lengths.join(", "));
}

/** Runs a block line by line; its last lines are the outcome, and all of it must be what its page shows, if it does. */
function shell(cwd, { page, command, output }) {
  for (const line of command.split("\n")) {
    const startedAtMs = performance.now();
    const options = { cwd, env, encoding: "utf8", timeout: 1_800_000, maxBuffer: 2 ** 26 };
    const { stdout, stderr, status, error } = spawnSync("sh", ["-c", line], options);
    if (status !== 0) failed(line, startedAtMs, error?.message ?? `exit ${status}\n${stdout.slice(-4000)}${stderr.slice(-2000)}`);
    else if (output !== undefined && stdout.trim() !== output.trim()) failed(line, startedAtMs, `${page} shows something else\n${stdout}`);
    else said(line, startedAtMs, outcomeOf(stdout)); // prettier-ignore
  }
}

/** The README's TypeScript, compiled here and run by the packages that are installed there. */
function runTypeScript() {
  const blocks = snippets([join(root, "README.md")]).filter(({ words }) => words.includes("run"));
  const { ok, messages, files } = compileSnippets(blocks, join(root, "artifacts/newcomer"));
  assert.ok(ok, messages);
  for (const [index, block] of blocks.entries()) {
    const startedAtMs = performance.now();
    const file = join(project, `readme-line-${block.line}.js`);
    writeFileSync(file, readFileSync(files[index]));
    const complaint = complaintOnRun(block, file);
    if (complaint === undefined) said(`node readme-line-${block.line}.js`, startedAtMs, "prints what README.md shows");
    else failed(`node readme-line-${block.line}.js`, startedAtMs, complaint);
  }
}

function outcomeOf(stdout) {
  const tests = stdout.match(/^ℹ (?:tests|pass|fail|skipped) \d+$/gm);
  return (tests ?? stdout.trim().split("\n").slice(-3)).join("\n  ");
}

function said(command, startedAtMs, outcome) {
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`$ ${command.replaceAll("\n", "\n  ")}   (${seconds} s)\n  ${outcome}`);
}

function failed(command, startedAtMs, why) {
  said(command, startedAtMs, `FAILED: ${why}`);
  process.exitCode = 1;
}
