// `npm run check`: what can be told without running the product: lint (with types), format, unused code, what would be
// published, documents against code (the `.check.test.mjs` files), and how many files a request walks through.
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { root } from "./lib/files.mjs";
import { commandOf, testFiles, testOptions } from "./lib/suites.mjs";

/** Each is a command line of a tool; it passes with exit status 0. */
const checks = {
  lint: ["oxlint"],
  format: ["prettier", "--check", "--log-level=warn", "--cache", "--cache-location=artifacts/prettier-cache", "."],
  "unused files, exports and dependencies": ["knip", "--no-progress", "--no-config-hints"],
  "package sheaf": ["publint", "packages/sheaf", "--strict", "--pack=npm"],
  "package sheaf-server": ["publint", "packages/sheaf-server", "--strict", "--pack=npm"],
};

// publint looks at the built files, and so do the documents' tests.
const build = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

// The tools at the same time: each waits, or leaves a core idle, for part of its own.
const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
await Promise.all(
  Object.entries(checks).map(async ([name, [tool, ...parameters]]) => {
    const options = { cwd: root, env, maxBuffer: 2 ** 26 };
    const run = promisify(execFile)(process.execPath, [`node_modules/.bin/${tool}`, ...parameters], options);
    const broken = await run.then(() => undefined, ({ message, stdout, stderr }) => stdout + stderr || message); // prettier-ignore
    console.log(broken === undefined ? `✔ ${name}` : `✖ ${name}\n${broken}`);
    if (broken !== undefined) process.exitCode = 1;
  }),
);
for (const parameters of [
  ["scripts/prove/walk.mjs"],
  [...testOptions, ...testFiles([]).filter((file) => commandOf(file) === "check")],
]) {
  const { status } = spawnSync(process.execPath, parameters, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
