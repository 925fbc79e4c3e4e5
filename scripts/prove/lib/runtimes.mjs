import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const bits = { x64: "x64", arm64: "arm64" }[process.arch];
const workerdBits = { x64: "64", arm64: "arm64" }[process.arch];
const bunBits = { x64: "x64", arm64: "aarch64" }[process.arch];

/** The versions of Node that `engines` names. */
export const nodeVersions = ["20", "22", "24", "26"];

/** The runtimes that npm carries as plain binaries, for Linux with glibc. `command` runs a script with them. */
const candidates = {
  ...Object.fromEntries(
    nodeVersions.map((version) => [
      `Node ${version}`,
      { package: `npm:node-linux-${bits}@${version}`, binary: "bin/node" },
    ]),
  ),
  Bun: { package: `npm:@oven/bun-linux-${bunBits}@1`, binary: "bin/bun" },
  Deno: { package: `npm:@deno/linux-${bits}-glibc@2`, binary: "deno", parameters: ["run", "--allow-all"] },
  // Has no command line: workerd.mjs starts it.
  workerd: { package: `npm:@cloudflare/workerd-linux-${workerdBits}@1`, binary: "bin/workerd" },
};

/**
 * Installs the named runtimes into a folder, as aliases beside each other. Returns, for each and for this Node first,
 * its name with its version and the command line before the script.
 */
export function installRuntimes(folder, names = Object.keys(candidates).filter((name) => name !== "Node 20")) {
  if (process.platform !== "linux" || bits === undefined)
    throw new Error(
      `npm carries these runtimes' binaries for Linux on x64 and arm64; this is ${process.platform} on ${process.arch}`,
    );
  const alias = (name) => name.toLowerCase().replace(" ", "");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const packages = names.map((name) => `${alias(name)}@${candidates[name].package}`);
  const { status, stderr } = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm install ${packages.join(" ")} failed:\n${stderr}`);
  const installed = names.map((name) => {
    const { binary, parameters = [] } = candidates[name];
    const path = join(folder, "node_modules", alias(name), binary);
    if (!existsSync(path)) throw new Error(`${packages.join(" ")}: there is no ${path}`);
    return { name: `${name.split(" ")[0]} ${versionOf(path)}`, command: [path, ...parameters] };
  });
  return [{ name: `Node ${process.versions.node}`, command: [process.execPath] }, ...installed];
}

/** The Node of a base image such as `node:26-slim`, installed from npm into a folder. */
export function imageNode(folder, from) {
  const [, version] = /^node:(\d+)\b/.exec(from);
  const { name, command } = installRuntimes(folder, [`Node ${version}`])[1];
  return { name, path: command[0] };
}

function versionOf(path) {
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
  return /\d+(?:\.\d+\.\d+|-\d+-\d+)/.exec(stdout)?.[0] ?? "?";
}
