// `npm run site [-- --base /sheaf/] [-- --serve]`: builds the site into scripts/site/dist. It needs a network only for `npm ci` in scripts/site/, which it runs where that is missing or older than the lockfile.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { root } from "./lib/files.mjs";

const changedAt = (path) => statSync(`${root}/scripts/site/${path}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;

if (changedAt("node_modules/.package-lock.json") < changedAt("package-lock.json"))
  run("npm", ["ci"], `${root}/scripts/site`);
run(process.execPath, ["scripts/site/build.mjs", ...process.argv.slice(2)], root);

function run(command, parameters, cwd) {
  const { status } = spawnSync(command, parameters, { cwd, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
