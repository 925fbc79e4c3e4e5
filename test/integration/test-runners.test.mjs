// A user's own tests with the packed library: jest on CommonJS, ts-jest as Nest sets it up, vitest, each with fake timers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { installTarballs, packTarballs } from "../../scripts/lib/tarballs.mjs";

const here = dirname(fileURLToPath(import.meta.url));
// In this folder, so that the project finds the runners, and `sheaf` as it was packed.
const project = join(here, "artifacts", "test-runners");
const require = createRequire(import.meta.url);
before(async () => {
  rmSync(project, { recursive: true, force: true });
  await installTarballs(await packTarballs(["sheaf"], join(project, "packed")), project);
  cpSync(join(here, "runners"), project, { recursive: true });
  const compilerOptions = { module: "commonjs", moduleResolution: "node10", target: "es2022", strict: true };
  const types = { types: ["jest"], typeRoots: [join(here, "node_modules", "@types")] };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compilerOptions, ...types } }));
  const jest = (name, config) =>
    writeFileSync(join(project, `${name}.config.json`), JSON.stringify({ rootDir: ".", ...config }));
  jest("jest", { testMatch: ["**/*.spec.js"] });
  jest("ts-jest", { testMatch: ["**/*.spec.ts"], transform: { "\\.ts$": require.resolve("ts-jest") } });
});
after(() => rmSync(project, { recursive: true, force: true }));

const run = (file, words) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...words], { cwd: project, encoding: "utf8" });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  return `${stdout}\n${stderr}`;
};
const jestFile = require.resolve("jest/bin/jest");

test("jest runs CommonJS tests that require sheaf", () => {
  assert.match(run(jestFile, ["--config", "jest.config.json"]), /Tests:\s+2 passed, 2 total/);
});

test("ts-jest compiles a service and its tests to CommonJS, types and all", () => {
  assert.match(run(jestFile, ["--config", "ts-jest.config.json"]), /Tests:\s+3 passed, 3 total/);
});

test("vitest runs tests under its fake timers", () => {
  const file = join(dirname(require.resolve("vitest/package.json")), "vitest.mjs");
  assert.match(run(file, ["run", "vitest.spec.mjs"]), /2 passed/);
});
