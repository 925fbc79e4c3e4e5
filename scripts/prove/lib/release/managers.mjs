import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How each package manager adds packages to a project, and runs a file and the command of one there. */
export function managersOf(tool) {
  const pnpm = [process.execPath, tool("pnpm/bin/pnpm.cjs")];
  const yarn = [process.execPath, tool("@yarnpkg/cli-dist/bin/yarn.js")];
  return {
    npm: { add: ["npm", "install", "--no-audit", "--no-fund"], node: [process.execPath], sheaf: ["npx", "sheaf"] },
    pnpm: { add: [...pnpm, "add"], node: [process.execPath], sheaf: [...pnpm, "exec", "sheaf"] },
    // Plug'n'Play, its default: there is no node_modules.
    yarn: { add: [...yarn, "add"], node: [...yarn, "node"], sheaf: [...yarn, "run", "sheaf"] },
  };
}

/** Has every manager ask the registry in this folder, and keep the downloads below `caches`: they find nothing else. */
function useRegistry(folder, url, caches) {
  const npmrc = [`registry=${url}`, `cache=${join(caches, "npm")}`, `store-dir=${join(caches, "pnpm")}`];
  writeFileSync(join(folder, ".npmrc"), `${npmrc.join("\n")}\n`);
  const yarnrc = {
    npmRegistryServer: url,
    unsafeHttpWhitelist: ["127.0.0.1"],
    globalFolder: join(caches, "yarn"),
    enableTelemetry: false,
    // The packages published a minute ago are to be installed.
    npmMinimalAgeGate: 0,
  };
  writeFileSync(join(folder, ".yarnrc.yml"), JSON.stringify(yarnrc));
}

/** An empty project of a user of the registry. */
export function emptyProject(folder, url, caches) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "user", version: "1.0.0", private: true, type: "module" }),
  );
  useRegistry(folder, url, caches);
}
