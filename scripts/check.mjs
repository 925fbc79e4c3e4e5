// `npm run check`: what can be told without running the product: lint (with types), format, unused code, what would be
// published, documents against code (the `.check.test.mjs` files), and how many files a request walks through.
import { spawnSync } from "node:child_process";
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

const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
for (const [name, [tool, ...parameters]] of Object.entries(checks)) {
  const { status, stdout, stderr } = run([`node_modules/.bin/${tool}`, ...parameters], { env, encoding: "utf8" });
  console.log(`${status === 0 ? "✔" : `✖`} ${name}${status === 0 ? "" : `\n${stdout}${stderr}`}`);
}
run(["prove/walk.mjs"], { stdio: "inherit" });
run([...testOptions, ...testFiles([]).filter((file) => commandOf(file) === "check")], { stdio: "inherit" });

function run(parameters, options) {
  const ended = spawnSync(process.execPath, parameters, { cwd: root, maxBuffer: 2 ** 26, ...options });
  if (ended.status !== 0) process.exitCode = 1;
  return ended;
}
