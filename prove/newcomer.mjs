/**
 * `npm run prove -- newcomer`: what README.md tells a newcomer to type, typed: a fresh clone in an empty folder, no
 * environment but PATH and HOME, the server's command until it is ready, the curl, then the test command. Prints each
 * step with its seconds. The port must be free; it is the README's.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/lib/files.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";
import { until } from "../scripts/lib/serving.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-newcomer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const clone = join(folder, "clone");
const options = { cwd: clone, env: { PATH: process.env.PATH, HOME: process.env.HOME } };

const readme = readFileSync(`${root}/README.md`, "utf8");
const commands = codeBlocks(readme).flatMap(({ language, text }) => (language === "sh" ? [text.trim()] : []));
const [serve, curl] = ["npm start", "curl "].map((word) => commands.find((command) => command.includes(word)));
const tests = commands.find((command) => command.endsWith("npm test"));

execFileSync("git", ["clone", "--quiet", root, clone]);

const started = performance.now();
// A process group of its own: npm does not pass SIGTERM on to what its script started.
const server = spawn("sh", ["-c", serve], { ...options, detached: true, stdio: ["ignore", "ignore", "inherit"] });
const exited = new Promise((resolve) => server.once("exit", resolve));
try {
  await until(async () => (await fetch("http://localhost:8000/readyz")).ok, exited, 300);
  said(serve, started, "ready");
  const asked = performance.now();
  const { stdout, status } = spawnSync("sh", ["-c", curl], { ...options, encoding: "utf8" });
  assert.equal(status, 0);
  const vectors = JSON.parse(stdout).data.map(({ embedding }) => embedding);
  const lengths = vectors.map((vector) => `${vector.length} numbers of length ${Math.hypot(...vector).toFixed(4)}`);
  said(curl, asked, lengths.join(", "));
} finally {
  process.kill(-Number(server.pid), "SIGTERM");
}
await exited;

const testing = performance.now();
const { status, stdout } = spawnSync("sh", ["-c", tests], { ...options, encoding: "utf8", maxBuffer: 2 ** 26 });
said(tests, testing, (stdout.match(/^ℹ (?:tests|pass|fail|skipped) \d+$/gm) ?? []).join(", "));
if (status !== 0) console.log(stdout.slice(-4000));
process.exitCode = status;

function said(command, startedAtMs, outcome) {
  console.log(`$ ${command}\n  ${outcome} (${((performance.now() - startedAtMs) / 1000).toFixed(1)} s)`);
}
