// The static checks: `npm run check` runs them by hand, test/checks.test.mjs as part of `npm test`.
import { spawn } from "node:child_process";
import { root } from "./files.mjs";

/** Each is a command line of a tool; it passes with exit status 0. */
export const checks = {
  lint: ["oxlint"],
  format: ["prettier", "--check", "--log-level=warn", "--cache", "--cache-location=artifacts/prettier-cache", "."],
  "unused files, exports and dependencies": ["knip", "--no-progress", "--no-config-hints"],
  "package sheaf": ["publint", "packages/sheaf", "--strict", "--pack=npm"],
  "package sheaf-server": ["publint", "packages/sheaf-server", "--strict", "--pack=npm"],
};

/** Runs one check on the repository; the output is both streams, without colours. */
export function runCheck(name) {
  const [tool, ...parameters] = checks[name];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [`${root}/node_modules/.bin/${tool}`, ...parameters], {
      cwd: root,
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    child.on("error", reject).on("close", (status) => resolve({ status, output: output.trim() }));
  });
}
