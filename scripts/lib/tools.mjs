import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
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

/** "Are the types wrong?": whether every way to import a package finds its types. */
export const attw = "@arethetypeswrong/cli@0.18";

/**
 * The command line of attw on a tarball, with the tools that `installTools` installed. sheaf-server is imported only; as
 * sheaf's `typesVersions` leads node10 to types alone, its package.json is left out.
 */
export const attwCommand = (tool, tarball) => [
  process.execPath,
  tool("@arethetypeswrong/cli/dist/index.js"),
  "--no-emoji",
  tarball,
  ...(basename(tarball).startsWith("sheaf-server")
    ? ["--profile", "esm-only"]
    : ["--exclude-entrypoints", "package.json"]),
];
