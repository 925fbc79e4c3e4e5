// `npm run check`: lint (with types), format, unused code, and what would be published. Part of `npm test` too.
import { spawnSync } from "node:child_process";
import { checks, runCheck } from "./lib/checks.mjs";
import { root } from "./lib/files.mjs";

// publint looks at the built files.
const build = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

for (const name of Object.keys(checks)) {
  const { status, output } = await runCheck(name);
  console.log(`${status === 0 ? "✔" : "✖"} ${name}`);
  if (status === 0) continue;
  console.log(output);
  process.exitCode = 1;
}
