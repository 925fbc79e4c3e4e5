import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { filesBelow, root } from "./files.mjs";

/** The package that a test file belongs to, or the repository. */
export function suiteOf(file) {
  const path = relative(root, file);
  return /^packages\/([^/]+)\//.exec(path)?.[1] ?? (path.startsWith("test/") ? "repository" : path.split("/", 1)[0]);
}

/**
 * The command that runs a test file: "check", "e2e" or "release" where a folder above it is called so or its name ends in
 * `.e2e.test.ts` and the like, "integration" in that folder, else "test".
 */
export function commandOf(file) {
  const path = relative(root, file);
  if (path.startsWith("test/integration/")) return "integration";
  const [, folder, suffix] = /\/(check|e2e|release)\/|\.(check|e2e|release)\.test\./.exec(path) ?? [];
  return folder ?? suffix ?? "test";
}

/** Every test file that is built, or those whose path holds one of the words, or whose suite is one of them. */
export function testFiles(words) {
  // node --test takes no globs on Node 20: list the files.
  return [
    ...filesBelow("packages/sheaf/dist-test", ".test.js"),
    ...filesBelow("packages/sheaf-server/dist-test", ".test.js"),
    ...filesBelow("test", ".test.mjs").filter((file) => !file.includes("/test/integration/")),
  ].filter((file) => words.length === 0 || words.some((word) => file.includes(word) || suiteOf(file) === word));
}

/** The test files of `test/integration/`, which is installed on its own; with words those whose path holds one. */
export function integrationFiles(words) {
  return readdirSync(`${root}/test/integration`)
    .filter((name) => name.endsWith(".test.mjs") && (words.length === 0 || words.some((word) => name.includes(word))))
    .map((name) => `${root}/test/integration/${name}`);
}

/** Two processes: every machine that counts has two cores. */
export const testsAtOnce = 2;
/** Of a file: a hang fails, with its name, and a crowded machine does not. No forced exit: an open handle is a failure too. */
export const testTimeoutMs = 1_800_000;

/** How another Node runs them. */
export const testOptions = [
  "--test",
  `--test-reporter=${root}/scripts/lib/reporter.mjs`,
  `--test-concurrency=${testsAtOnce}`,
  `--test-timeout=${testTimeoutMs}`,
];

const filesInGroup = 16;
const groupSuffix = ".group.test.mjs";

/**
 * Replaces the library's test files by temporary files that import up to 16 of a folder each: starting a process costs 0.3 s of CPU,
 * half of what a file takes. The server's files keep a process each, because some look at what it has loaded.
 */
export function grouped(files) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-tests-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const groups = [];
  for (const file of files) {
    const last = groups.at(-1);
    const isOf = last !== undefined && suiteOf(file) === "sheaf" && dirname(last[0]) === dirname(file);
    if (isOf && last.length < filesInGroup) last.push(file);
    else groups.push([file]);
  }
  return groups.map((group, index) => {
    if (group.length === 1) return group[0];
    const name = `${index}-${relative(root, dirname(group[0])).replaceAll("/", "-")}${groupSuffix}`;
    writeFileSync(join(folder, name), group.map((file) => `await import(${JSON.stringify(file)});\n`).join(""));
    return join(folder, name);
  });
}

/** The test files that a group imports; the file itself where it is no group. */
export function filesOf(file) {
  if (!file.endsWith(groupSuffix)) return [file];
  return Array.from(readFileSync(file, "utf8").matchAll(/import\((".*")\)/g), ([, path]) => JSON.parse(path));
}
