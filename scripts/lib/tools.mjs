import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { userEnvironment } from "./tarballs.mjs";

/**
 * Installs packages that only a release or a proof needs into a folder of their own, so that `npm ci` stays quick. Each is
 * `name@version` or `alias@npm:name@version`; `overrides` are npm's. Returns a file of one of them by its path.
 */
export function installTools(folder, packages, overrides = {}) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, overrides }));
  const parameters = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...packages];
  execFileSync("npm", parameters, { cwd: folder, env: userEnvironment(), stdio: ["ignore", "ignore", "inherit"] });
  return (path) => join(folder, "node_modules", path);
}
